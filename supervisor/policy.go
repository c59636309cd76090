// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"math/rand/v2"
	"time"
)

// The times of the restart policy.
const (
	maxDelay     = 300 * time.Second // of a restart
	stableAfter  = time.Minute       // of being ready resets the count
	parkedEvery  = 5 * time.Minute   // a parked server is tried
	wakeEvery    = 30 * time.Second  // a call may try a parked server
	recheckEvery = 10 * time.Second  // whether what made a server fail is gone
)

// A policy counts the failures of one server and says when to try again. It
// belongs to the server's owner.
type policy struct {
	failures int       // in a row
	readyAt  time.Time // zero unless ready
	answered bool      // a good answer came since readyAt
	jitter   func() float64
}

func newPolicy() policy { return policy{jitter: rand.Float64} }

// ready is told when the server became ready.
func (p *policy) ready(now time.Time) { p.readyAt, p.answered = now, false }

// reset forgets the failures, as an edit or a person's restart does.
func (p *policy) reset() { p.failures, p.readyAt, p.answered = 0, time.Time{}, false }

// ended is told of a run that failed, and says how long to wait before the next
// one; parked is set when the server failed more than limit times in a row. The
// first restart after a stable minute, with a good answer in it, is immediate.
func (p *policy) ended(now time.Time, first time.Duration, limit int) (wait time.Duration, parked bool) {
	stable := !p.readyAt.IsZero() && p.answered && now.Sub(p.readyAt) >= stableAfter
	if stable {
		p.failures = 0
	}
	p.readyAt = time.Time{}
	p.failures++
	switch {
	case p.failures > limit:
		return p.spread(parkedEvery), true
	case stable:
		return 0, false
	}
	wait = first
	for range p.failures - 1 {
		if wait *= 2; wait >= maxDelay {
			break
		}
	}
	return min(p.spread(wait), maxDelay), false
}

// spread moves d by up to a tenth in either direction, so that servers that
// failed together don't start together.
func (p *policy) spread(d time.Duration) time.Duration {
	return d + time.Duration((p.jitter()*2-1)*0.1*float64(d))
}
