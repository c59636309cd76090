// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"testing"
	"time"
)

// even is a policy without jitter.
func even() Policy { return Policy{jitter: func() float64 { return 0.5 }} }

func TestDelaysDouble(t *testing.T) {
	t.Parallel()
	p, now := even(), time.Unix(0, 0)
	for i, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300, 300} {
		wait, parked := p.Crashed(now, true, 5*time.Second, 100)
		if wait != want*time.Second || parked {
			t.Errorf("failure %d: %v, parked %v, want %v", i+1, wait, parked, want*time.Second)
		}
	}
}

func TestDelaysOfManyFailures(t *testing.T) {
	t.Parallel()
	p := even()
	p.failures = 999_998
	if wait, parked := p.Crashed(time.Unix(0, 0), false, 100*time.Millisecond, 1_000_000); wait != MaxDelay || parked {
		t.Errorf("%v, parked %v", wait, parked)
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		jitter    float64
		first     time.Duration
		want      time.Duration
		wantPark  time.Duration
		wantAtCap time.Duration
	}{
		{0, 10 * time.Second, 9 * time.Second, 270 * time.Second, 270 * time.Second},
		{0.5, 10 * time.Second, 10 * time.Second, 300 * time.Second, 300 * time.Second},
		{0.75, 10 * time.Second, 10500 * time.Millisecond, 315 * time.Second, 300 * time.Second},
	} {
		p := Policy{jitter: func() float64 { return test.jitter }}
		if wait, _ := p.Crashed(time.Unix(0, 0), false, test.first, 1); wait != test.want {
			t.Errorf("jitter %v: first delay %v, want %v", test.jitter, wait, test.want)
		}
		if wait, parked := p.Crashed(time.Unix(0, 0), false, test.first, 1); wait != test.wantPark || !parked {
			t.Errorf("jitter %v: parked %v for %v, want %v", test.jitter, parked, wait, test.wantPark)
		}
		p.failures = 20
		if wait, _ := p.Crashed(time.Unix(0, 0), false, test.first, 100); wait != test.wantAtCap {
			t.Errorf("jitter %v: at the cap %v, want %v", test.jitter, wait, test.wantAtCap)
		}
	}
}

// The jitter that is in use stays within a tenth, and isn't always the same.
func TestJitterIsRandom(t *testing.T) {
	t.Parallel()
	seen := make(map[time.Duration]bool)
	for range 100 {
		p := New()
		wait, _ := p.Crashed(time.Unix(0, 0), false, 10*time.Second, 5)
		if wait < 9*time.Second || wait > 11*time.Second {
			t.Fatalf("%v", wait)
		}
		seen[wait] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different delays of 100", len(seen))
	}
}

func TestStableRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		ready    time.Duration // how long; 0 when it never was
		answered bool
		failures int // before
		wait     time.Duration
		after    int // failures
	}{
		{"never ready", 0, false, 2, 20 * time.Second, 3},
		{"a short time", 59 * time.Second, true, 2, 20 * time.Second, 3},
		{"long, no answer", time.Hour, false, 2, 20 * time.Second, 3},
		{"a minute", time.Minute, true, 2, 0, 0},
		{"long", time.Hour, true, 4, 0, 0},
		{"long, at the limit", time.Hour, true, 5, 0, 0},
	} {
		p, now := even(), time.Unix(1000, 0)
		p.failures = test.failures
		if test.ready > 0 {
			p.Ready(now)
		}
		wait, parked := p.Crashed(now.Add(test.ready), test.answered, 5*time.Second, 5)
		if wait != test.wait || parked || p.failures != test.after {
			t.Errorf("%s: wait %v, parked %v, failures %d", test.name, wait, parked, p.failures)
		}
		// That it was stable counts once.
		again, _ := p.Crashed(now.Add(test.ready+time.Second), true, 5*time.Second, 5)
		if want := doubled(5*time.Second, test.after); again != want {
			t.Errorf("%s: the next restart comes after %v, want %v", test.name, again, want)
		}
	}
}

func TestParking(t *testing.T) {
	t.Parallel()
	for limit := range 4 {
		p := even()
		for i := range limit {
			if _, parked := p.Crashed(time.Unix(0, 0), false, time.Second, limit); parked {
				t.Errorf("limit %d: parked after failure %d", limit, i+1)
			}
		}
		for range 2 {
			wait, parked := p.Crashed(time.Unix(0, 0), false, time.Second, limit)
			if !parked || wait != ParkedEvery {
				t.Errorf("limit %d: parked %v, wait %v", limit, parked, wait)
			}
		}
		if limit == 0 {
			continue
		}
		p.Reset()
		if wait, parked := p.Crashed(time.Unix(0, 0), false, time.Second, limit); parked || wait != time.Second {
			t.Errorf("limit %d, after a reset: parked %v, wait %v", limit, parked, wait)
		}
	}
}

// A cause that can't be seen is looked for ever less often.
func TestFailedStarts(t *testing.T) {
	t.Parallel()
	p := even()
	p.failures = 3
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if wait := p.Failed(10 * time.Second); wait != want*time.Second {
			t.Errorf("start %d: %v, want %v", i+1, wait, want*time.Second)
		}
	}
	if p.failures != 0 {
		t.Errorf("%d failures", p.failures)
	}
	p.Ready(time.Unix(0, 0))
	if wait := p.Failed(10 * time.Second); wait != 10*time.Second {
		t.Errorf("after it was ready: %v", wait)
	}
}
