// SPDX-License-Identifier: Apache-2.0

// Package backoff says when a server that failed is tried again.
package backoff

import (
	"math/rand/v2"
	"time"
)

// The times of the policy.
const (
	MaxDelay    = 300 * time.Second // of a restart
	StableAfter = time.Minute       // of being ready forgets the failures
	ParkedEvery = 5 * time.Minute   // a parked server is tried
	WakeEvery   = 30 * time.Second  // a call may try a parked server
)

// A Policy counts the failures of one server and says when to try again. It is
// for one goroutine.
type Policy struct {
	failures int            // in a row
	misfires int            // starts in a row that failed for good
	readyAt  time.Time      // zero unless ready
	jitter   func() float64 // in [0, 1)
}

// New returns a Policy that knows of no failure.
func New() Policy { return Policy{jitter: rand.Float64} }

// Resume begins with the failures of an earlier garra.
func (p *Policy) Resume(failures int) { p.failures = failures }

// Failures is how often the server has failed in a row.
func (p *Policy) Failures() int { return p.failures }

// Ready is told when the server became ready.
func (p *Policy) Ready(now time.Time) { p.readyAt, p.misfires = now, 0 }

// Reset forgets the failures, as an edit or a person's restart does.
func (p *Policy) Reset() { p.failures, p.misfires, p.readyAt = 0, 0, time.Time{} }

// Crashed is told of a run that ended by itself, and says how long to wait
// before the next one, at first the time given as first; parked is set when the
// server failed more than limit times in a row. A run is stable when it was
// ready for a minute and answered something: it and the failures before it don't
// count, and the restart is immediate.
func (p *Policy) Crashed(
	now time.Time, answered bool, first time.Duration, limit int,
) (wait time.Duration, parked bool) {
	if p.Ended(now, answered) && limit > 0 {
		return 0, false
	}
	p.failures++
	if p.failures > limit {
		return p.spread(ParkedEvery), true
	}
	return min(p.spread(doubled(first, p.failures-1)), MaxDelay), false
}

// Ended is told of the end of any run, and reports whether the run was stable: then the
// failures before it are forgotten.
func (p *Policy) Ended(now time.Time, answered bool) (stable bool) {
	stable = answered && !p.readyAt.IsZero() && now.Sub(p.readyAt) >= StableAfter
	p.readyAt = time.Time{}
	if stable {
		p.failures = 0
	}
	return stable
}

// Failed is told of a start that can't succeed before its cause is gone, and
// says when to look for that. A cause that can't be seen from outside (the file
// is no program) is tried ever less often.
func (p *Policy) Failed(first time.Duration) (wait time.Duration) {
	p.failures, p.readyAt = 0, time.Time{}
	p.misfires++
	return doubled(first, p.misfires-1)
}

// doubled doubles d a number of times, up to MaxDelay.
func doubled(d time.Duration, times int) time.Duration {
	for range times {
		if d >= MaxDelay {
			break
		}
		d *= 2
	}
	return min(d, MaxDelay)
}

// spread moves d by up to a tenth in either direction, so that servers that
// failed together don't start together.
func (p *Policy) spread(d time.Duration) time.Duration {
	return d + time.Duration((p.jitter()*2-1)*0.1*float64(d))
}
