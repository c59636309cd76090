// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

func TestRestartPolicy(t *testing.T) {
	t.Parallel()
	scene(t, "delays grow, then it is parked", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		for i := range 5 {
			s.crash()
			now := s.is(t, source.Backoff)
			want := 5 * time.Second << i
			if wait := time.Until(now.NextTry); wait < want*9/10 || wait > want*11/10 {
				t.Errorf("failure %d: next try in %v, want about %v", i+1, wait, want)
			}
			if s.running() != 0 || now.Restarts != i || now.LastError == nil {
				t.Errorf("failure %d: %+v", i+1, now)
			}
			pass(time.Until(now.NextTry))
			s.is(t, source.Starting)
		}
		s.crash()
		s.is(t, source.Parked)
	})
	scene(t, "an early crash after becoming ready counts too", func(t *testing.T) {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 2 }))
		defer s.close(t)
		for range 2 {
			s.ready()
			s.last().link.answered.Store(true)
			pass(time.Second)
			s.crash()
			now := s.is(t, source.Backoff)
			pass(time.Until(now.NextTry))
		}
		s.ready()
		s.crash()
		s.is(t, source.Parked)
	})
	scene(t, "a parked server is tried every five minutes", func(t *testing.T) {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 1 }))
		defer s.close(t)
		s.crash()
		pass(6 * time.Second)
		s.crash()
		for i := range 3 {
			now := s.is(t, source.Parked)
			if wait := time.Until(now.NextTry); wait < 270*time.Second || wait > 330*time.Second {
				t.Errorf("try %d in %v", i, wait)
			}
			pass(time.Until(now.NextTry))
			s.is(t, source.Starting)
			s.crash()
		}
		s.is(t, source.Parked)
		if s.count() != 5 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "never by itself", func(t *testing.T) {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 0 }))
		defer s.close(t)
		s.ready()
		s.last().link.answered.Store(true)
		pass(time.Hour)
		s.crash()
		if now := s.is(t, source.Parked); !now.NextTry.IsZero() {
			t.Errorf("next try: %v", now.NextTry)
		}
		pass(24 * time.Hour)
		s.is(t, source.Parked)
		if s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
		if err := restart(t, s, s.ready); err != nil {
			t.Error(err)
		}
		s.is(t, source.Ready)
	})
}

func TestRestartAfterAStableRun(t *testing.T) {
	t.Parallel()
	scene(t, "is immediate", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		for range 3 {
			s.crash()
			pass(time.Minute)
		}
		s.ready()
		s.last().link.answered.Store(true)
		pass(backoff.StableAfter)
		s.crash()
		s.is(t, source.Starting)
		if s.count() != 5 {
			t.Errorf("%d runs", s.count())
		}
		s.crash() // the count began anew
		now := s.is(t, source.Backoff)
		if wait := time.Until(now.NextTry); wait > 11*time.Second {
			t.Errorf("next try in %v", wait)
		}
	})
	scene(t, "is not without an answer", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.ready()
		pass(time.Hour)
		s.crash()
		s.is(t, source.Backoff)
	})
	scene(t, "what went wrong is told until it is ready", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.crash()
		pass(time.Minute)
		if now := s.is(t, source.Starting); now.LastError == nil {
			t.Errorf("%+v", now)
		}
		s.ready()
		if now := s.is(t, source.Ready); now.LastError != nil || now.Restarts != 1 {
			t.Errorf("%+v", now)
		}
	})
}

func TestCallsWakeAParkedServer(t *testing.T) {
	t.Parallel()
	park := func(t *testing.T) *stage {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 1 }))
		s.crash()
		pass(6 * time.Second)
		s.crash()
		s.is(t, source.Parked)
		return s
	}
	scene(t, "once for all, and it comes back", func(t *testing.T) {
		s := park(t)
		defer s.close(t)
		before := s.count()
		var calls []<-chan error
		for range 20 {
			calls = append(calls, hello(t.Context(), s))
		}
		s.is(t, source.Starting)
		s.ready()
		for _, c := range calls {
			if err := <-c; err != nil {
				t.Error(err)
			}
		}
		if got := s.count() - before; got != 1 {
			t.Errorf("%d starts", got)
		}
	})
	scene(t, "once in half a minute, and it stays", func(t *testing.T) {
		s := park(t)
		defer s.close(t)
		before := s.count()
		var calls []<-chan error
		for range 20 {
			calls = append(calls, hello(t.Context(), s))
		}
		s.crash()
		for _, c := range calls {
			contains(t, failed(t, <-c, source.ServerParked).Error(), "it crashed", "garra mcp restart s")
		}
		pass(29 * time.Second)
		failed(t, <-hello(t.Context(), s), source.ServerParked)
		if got := s.count() - before; got != 1 {
			t.Errorf("%d starts", got)
		}
		pass(2 * time.Second)
		call := hello(t.Context(), s)
		s.crash()
		failed(t, <-call, source.ServerParked)
		if got := s.count() - before; got != 2 {
			t.Errorf("%d starts", got)
		}
	})
	scene(t, "also one that never starts by itself", func(t *testing.T) {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 0 }))
		defer s.close(t)
		s.crash()
		call := hello(t.Context(), s)
		s.ready()
		if err := <-call; err != nil {
			t.Error(err)
		}
	})
	scene(t, "a caller who saw an attempt fail is told", func(t *testing.T) {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 1 }))
		defer s.close(t)
		s.crash()
		call := hello(t.Context(), s)
		pass(6 * time.Second)
		s.crash()
		failed(t, <-call, source.ServerParked)
		if s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
	})
}

func TestWaitingForAServer(t *testing.T) {
	t.Parallel()
	scene(t, "that starts, and crashes, and comes", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		call := hello(t.Context(), s)
		s.crash()
		pass(time.Minute)
		s.ready()
		if err := <-call; err != nil {
			t.Error(err)
		}
	})
	scene(t, "until the caller changes its mind", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		call := hello(ctx, s)
		cancel(&source.CancelError{Reason: "enough"})
		failed(t, <-call, source.CallCancelled)
	})
	scene(t, "that is stopped meanwhile", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.lag = time.Second
		call := hello(t.Context(), s)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		contains(t, failed(t, <-call, source.ServerStopped).Error(), "garra mcp start s")
	})
	scene(t, "that is on its way down to come again", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.lag = time.Second
		s.ready()
		restarted := inBackground(func() error { return s.Restart(t.Context()) })
		s.is(t, source.Stopping)
		call := hello(t.Context(), s)
		pass(2 * time.Second)
		s.ready()
		if err := errors.Join(<-call, <-restarted); err != nil {
			t.Error(err)
		}
	})
	scene(t, "when garra stops", func(t *testing.T) {
		s := newStage(plain())
		call := hello(t.Context(), s)
		s.close(t)
		failed(t, <-call, source.ServerStopped)
		failed(t, <-hello(t.Context(), s), source.ServerStopped)
		failed(t, s.Restart(t.Context()), source.ServerStopped)
	})
}

func TestCallersWithLittleTime(t *testing.T) {
	t.Parallel()
	scene(t, "wait no longer than they can", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := failed(t, <-hello(ctx, s), source.CallTimeout)
		contains(t, f.Error(), "the server is in state starting", "mcp inspect s", "callTimeoutSecs")
	})
	scene(t, "are told which time was too short", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		ctx, cancel := context.WithTimeout(t.Context(), s.current.Load().entry.Timeout)
		defer cancel()
		f := failed(t, <-hello(ctx, s), source.CallTimeout)
		contains(t, f.Error(), "raise timeoutSecs")
	})
	scene(t, "don't wait at all for a try that is too late", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		waiting := s.patientFor(t.Context(), 2*time.Second)
		s.crash()
		for _, call := range append(waiting, s.patientFor(t.Context(), 4*time.Second)...) {
			began := time.Now()
			f := failed(t, <-call, source.CallTimeout)
			contains(t, f.Error(), "is tried again at "+s.Status().NextTry.Format(time.TimeOnly),
				"it crashed", "garra mcp restart s")
			if waited := time.Since(began); waited != 0 {
				t.Errorf("answered after %v", waited)
			}
		}
		inTime := s.patientFor(t.Context(), 6*time.Second)
		pass(time.Until(s.Status().NextTry))
		s.ready()
		for _, call := range inTime {
			if err := <-call; err != nil {
				t.Error(err)
			}
		}
	})
}

// patientFor waits for the server as a caller with so much time, and calls it.
func (s *stage) patientFor(ctx context.Context, d time.Duration) []<-chan error {
	call := inBackground(func() error {
		_, err := s.Call(ctx, &source.Call{Method: "x", Timeout: d})
		return err
	})
	limited, cancel := context.WithTimeout(ctx, d)
	return []<-chan error{call, inBackground(func() error {
		defer cancel()
		_, err := s.Hello(limited)
		return err
	})}
}
