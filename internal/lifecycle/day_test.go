// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A day of servers that fail in their ways, in virtual time: what is started stays within
// what the policy allows, and all of it ends.
func TestADay(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	tries := int(day/(backoff.ParkedEvery*9/10)) + mcpconfig.DefaultMaxRestarts + 1
	for name, test := range map[string]struct {
		life  func() time.Duration // of each run
		ready bool                 // it gets so, and answers
		most  int                  // runs in a day
		least int
	}{
		"crashes at once":              {func() time.Duration { return 0 }, false, tries, tries * 8 / 10},
		"never becomes ready":          {func() time.Duration { return time.Minute }, false, tries, 200},
		"crashes a second after ready": {func() time.Duration { return time.Second }, true, tries, tries * 8 / 10},
		"lives some minutes": {
			func() time.Duration { return backoff.StableAfter + rand.N(5*time.Minute) }, true, 24 * 60, 24 * 10,
		},
		"lives long": {func() time.Duration { return time.Hour }, true, 24 + 1, 24},
	} {
		scene(t, name, func(t *testing.T) {
			s := newStage(plain(), sharing(Shared{Rate: new(backoff.Rate), History: history.New()}))
			for began := time.Now(); time.Since(began) < day; {
				if s.running() == 0 {
					pass(time.Until(s.Status().NextTry) + time.Millisecond)
					continue
				}
				if test.ready {
					s.last().link.answered.Store(true)
					s.ready()
				}
				pass(test.life())
				s.crash()
			}
			s.close(t)
			if n := s.count(); n > test.most || n < test.least {
				t.Errorf("%d runs in a day, want %d to %d", n, test.least, test.most)
			}
			if n := len(s.Stops()); n != min(s.count(), history.Kept) {
				t.Errorf("%d stops are remembered", n)
			}
			if s.Status().State == source.Failed {
				t.Errorf("%+v", s.Status())
			}
		})
	}
}
