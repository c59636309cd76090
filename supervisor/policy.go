// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"math/rand/v2"
	"time"
)

// The times of the restart policy.
const (
	maxDelay    = 300 * time.Second // of a restart
	stableAfter = time.Minute       // of being ready forgets the failures
	parkedEvery = 5 * time.Minute   // a parked server is tried
	wakeEvery   = 30 * time.Second  // a call may try a parked server
)

// A policy counts the failures of one server and says when to try again. It
// belongs to the server's owner.
type policy struct {
	failures int            // in a row
	misfires int            // starts in a row that failed for good
	readyAt  time.Time      // zero unless ready
	jitter   func() float64 // in [0, 1)
}

func newPolicy() policy { return policy{jitter: rand.Float64} }

// ready is told when the server became ready.
func (p *policy) ready(now time.Time) { p.readyAt, p.misfires = now, 0 }

// reset forgets the failures, as an edit or a person's restart does.
func (p *policy) reset() { p.failures, p.misfires, p.readyAt = 0, 0, time.Time{} }

// crashed is told of a run that ended by itself, and says how long to wait
// before the next one; parked is set when the server failed more than limit
// times in a row. A run is stable when it was ready for a minute and answered
// something: it and the failures before it don't count, and the restart is
// immediate.
func (p *policy) crashed(
	now time.Time, answered bool, first time.Duration, limit int,
) (wait time.Duration, parked bool) {
	stable := answered && !p.readyAt.IsZero() && now.Sub(p.readyAt) >= stableAfter
	p.readyAt = time.Time{}
	if stable && limit > 0 {
		p.failures = 0
		return 0, false
	}
	p.failures++
	if p.failures > limit {
		return p.spread(parkedEvery), true
	}
	return min(p.spread(doubled(first, p.failures-1)), maxDelay), false
}

// failed is told of a start that can't succeed before its cause is gone, and
// says when to look for that. A cause that can't be seen from outside (the file
// is no program) is tried ever less often.
func (p *policy) failed(first time.Duration) (wait time.Duration) {
	p.failures, p.readyAt = 0, time.Time{}
	p.misfires++
	return doubled(first, p.misfires-1)
}

// doubled doubles d a number of times, up to maxDelay.
func doubled(d time.Duration, times int) time.Duration {
	for range times {
		if d >= maxDelay {
			break
		}
		d *= 2
	}
	return min(d, maxDelay)
}

// spread moves d by up to a tenth in either direction, so that servers that
// failed together don't start together.
func (p *policy) spread(d time.Duration) time.Duration {
	return d + time.Duration((p.jitter()*2-1)*0.1*float64(d))
}
