// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"testing"
	"time"
)

// Whatever is asked for, no more than the burst and one for each second come in a time.
func TestRate(t *testing.T) {
	t.Parallel()
	var r Rate
	start := time.Unix(1000, 0)
	var at []time.Duration // of each restart, since start
	for i := range 100 {   // at once
		at = append(at, r.Take(start))
		want := max(0, time.Duration(i+1-RateBurst)*RateEvery)
		if at[i] != want {
			t.Errorf("restart %d waits %v, want %v", i+1, at[i], want)
		}
	}
	if wait := r.Take(start.Add(100 * RateEvery)); wait != 0 {
		t.Errorf("after all have had their turn: %v", wait)
	}
	if wait := r.Take(start.Add(time.Hour)); wait != 0 {
		t.Errorf("after a quiet time: %v", wait)
	}
	for range RateBurst - 1 {
		r.Take(start.Add(time.Hour))
	}
	if wait := r.Take(start.Add(time.Hour)); wait != RateEvery {
		t.Errorf("a quiet time saves up no more than a burst: %v", wait)
	}
}

// Without a Rate nothing waits.
func TestNoRate(t *testing.T) {
	t.Parallel()
	var r *Rate
	if wait := r.Take(time.Unix(0, 0)); wait != 0 {
		t.Error(wait)
	}
}
