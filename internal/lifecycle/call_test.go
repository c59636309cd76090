// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/garraia/garra/source"
)

// What becomes of a session that its server forgot.
func TestForgottenSessions(t *testing.T) {
	t.Parallel()
	forgotten := Outcome{Failure: source.Fail(source.ServerCrashed, "s", "who are you?"), Forgotten: true}
	scene(t, "are replaced at once, but not every time", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.ready()
		s.last().ends <- forgotten
		s.is(t, source.Starting)
		s.ready()
		pass(replaceEvery - time.Second)
		s.last().ends <- forgotten
		now := s.is(t, source.Backoff)
		if wait := time.Until(now.NextTry); wait < 4*time.Second || wait > 6*time.Second {
			t.Errorf("next try in %v", wait)
		}
		pass(6 * time.Second)
		s.ready()
		s.last().ends <- forgotten
		if now := s.is(t, source.Starting); now.Restarts != 3 {
			t.Errorf("%+v", now)
		}
	})
}

// A call that had certainly no effect is made again over the next link.
func TestUndeliveredCalls(t *testing.T) {
	t.Parallel()
	lost := source.Fail(source.ServerCrashed, "s", "lost")
	call := func(t *testing.T, s *stage) <-chan error {
		return inBackground(func() error {
			_, err := s.Call(t.Context(), &source.Call{Method: "x"})
			return err
		})
	}
	undelivered := func(forgotten bool) func() error {
		return func() error { return &Undelivered{Cause: lost, Forgotten: forgotten} }
	}
	scene(t, "as often as it takes", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		var result <-chan error
		for i := range 3 {
			s.last().link.err = undelivered(false)
			s.ready()
			if i == 0 {
				result = call(t, s)
			}
			s.crash()
			pass(time.Until(s.Status().NextTry))
		}
		s.ready()
		if err := <-result; err != nil || s.last().link.calls.Load() != 1 {
			t.Errorf("%v, %d calls", err, s.last().link.calls.Load())
		}
	})
	scene(t, "once for a session that was forgotten", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.last().link.err = undelivered(true)
		s.ready()
		result := call(t, s)
		s.crash()
		pass(6 * time.Second)
		s.last().link.err = undelivered(true)
		s.ready()
		if f := failed(t, <-result, source.ServerCrashed); f != lost {
			t.Error(f)
		}
	})
	scene(t, "not over the link that lost it", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.last().link.err = undelivered(false)
		s.ready()
		result := call(t, s)
		if n := s.last().link.calls.Load(); n != 1 {
			t.Errorf("%d calls", n)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		failed(t, <-result, source.ServerStopped)
	})
}

// A call has the time of its entry from its beginning, unless it brings its own.
func TestTimeOfACall(t *testing.T) {
	t.Parallel()
	scene(t, "is complete", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.ready()
		c := &source.Call{Method: "x"}
		if _, err := s.Call(t.Context(), c); err != nil {
			t.Error(err)
		}
		got := s.last().link.last.Load()
		if got.Timeout != s.current.Load().entry.CallTimeout || !got.Began.Equal(time.Now()) || c.Timeout != 0 {
			t.Errorf("%+v of %+v", got, c)
		}
	})
}

// A runner may refuse a start by a person; nothing has changed then.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	scene(t, "leaves the run alone", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.refusal = source.Fail(source.ServerFailed, "s", "no")
		s.ready()
		failed(t, s.Restart(t.Context()), source.ServerFailed)
		if s.is(t, source.Ready); s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
		if err := s.Start(t.Context()); err != nil { // it is ready, so that nothing is started
			t.Error(err)
		}
	})
}
