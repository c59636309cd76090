// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"sync"
	"time"
)

// The bound on automatic restarts of all servers together.
const (
	RateEvery = time.Second // one restart on the average
	RateBurst = 20          // restarts at once, after a time without any
)

// A Rate bounds how many servers are restarted by policy in a time, over all of them: a
// fault that they share is no storm of processes. It is safe for concurrent use.
type Rate struct {
	mu   sync.Mutex // guards full
	full time.Time  // when all of the burst is to be had again
}

// Take takes the next restart, and returns how long it has to wait: 0 most of the time.
// Who waits longer than that, or doesn't restart after all, gives nothing back.
func (r *Rate) Take(now time.Time) (wait time.Duration) {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full.Before(now) {
		r.full = now
	}
	wait = max(0, r.full.Sub(now)-(RateBurst-1)*RateEvery)
	r.full = r.full.Add(RateEvery)
	return wait
}
