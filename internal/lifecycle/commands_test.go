// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

func TestFailedServers(t *testing.T) {
	t.Parallel()
	scene(t, "are looked at until the cause is gone", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.giveUp()
		s.is(t, source.Failed)
		contains(t, failed(t, <-hello(t.Context(), s), source.ServerFailed).Error(), "no such command")
		time.Sleep(time.Hour)
		s.is(t, source.Failed)
		if s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
		s.mended.Store(true)
		time.Sleep(11 * time.Second)
		s.is(t, source.Starting)
		s.ready()
		if now := s.is(t, source.Ready); now.Restarts != 0 {
			t.Errorf("%+v", now)
		}
	})
	scene(t, "whose cause can't be seen are tried less and less", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.mended.Store(true)
		for range 5 {
			s.giveUp()
			time.Sleep(backoff.MaxDelay + time.Second)
		}
		s.giveUp()
		before := s.count()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := s.count() - before; got != 1 { // which nobody ended
			t.Errorf("%d starts", got)
		}
	})
	scene(t, "can be restarted at once", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.giveUp()
		if err := restart(t, s, s.ready); err != nil {
			t.Error(err)
		}
		err := restart(t, s, s.giveUp)
		failed(t, err, source.ServerFailed)
		s.is(t, source.Failed)
	})
	scene(t, "that were stopped meanwhile stay so", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.giveUp()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		s.mended.Store(true)
		time.Sleep(time.Hour)
		s.is(t, source.Stopped)
	})
	scene(t, "don't wait for a slow look", func(t *testing.T) {
		s := newStage(plain())
		s.look = func() { time.Sleep(time.Hour) }
		s.mended.Store(true)
		defer s.close(t)
		s.giveUp()
		time.Sleep(time.Minute) // it looks now
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := restart(t, s, s.giveUp); err == nil {
			t.Error("no error")
		}
		before := s.count()
		time.Sleep(time.Hour) // the first look ends here, and is of no use any more
		if s.count() != before {
			t.Error("a late look started the server")
		}
		time.Sleep(2 * time.Hour) // for the second one
	})
}

func TestStopInEveryState(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(*stage){
		"starting": func(*stage) { synctest.Wait() },
		"ready":    func(s *stage) { s.ready() },
		"backoff":  func(s *stage) { s.crash() },
		"parked": func(s *stage) {
			s.crash()
			time.Sleep(6 * time.Second)
			s.crash()
		},
		"failed":  func(s *stage) { s.giveUp() },
		"stopped": func(s *stage) { _ = s.Stop(context.Background()) },
		"stopping": func(s *stage) {
			go s.Stop(context.Background()) // ends with the run; close waits for that
			synctest.Wait()
		},
	} {
		scene(t, name, func(t *testing.T) {
			s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 1 }))
			defer s.close(t)
			s.lag = 10 * time.Second
			reach(s)
			if got := s.Status().State; string(got) != name {
				t.Fatalf("%s", got)
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			got := s.Status()
			if got.State != source.Stopped || got.PID != 0 || !got.NextTry.IsZero() || s.running() != 0 {
				t.Errorf("%d runs: %+v", s.running(), got)
			}
			before := s.count()
			time.Sleep(24 * time.Hour)
			if s.is(t, source.Stopped); s.count() != before {
				t.Error("it was started again")
			}
			started := inBackground(func() error { return s.Start(t.Context()) })
			s.ready()
			if err := <-started; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCommandsThatMeet(t *testing.T) {
	t.Parallel()
	scene(t, "a stop ends a restart", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		restarted := inBackground(func() error { return s.Restart(t.Context()) })
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		failed(t, <-restarted, source.ServerStopped)
	})
	scene(t, "a start follows a stop", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.lag = time.Minute
		stopped := inBackground(func() error { return s.Stop(t.Context()) })
		started := inBackground(func() error { return s.Start(t.Context()) })
		if err := <-stopped; err != nil { // it did stop
			t.Error(err)
		}
		s.is(t, source.Starting)
		s.ready()
		if err := <-started; err != nil {
			t.Error(err)
		}
	})
	scene(t, "many restarts make one start", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.lag = time.Second
		s.ready()
		var all []<-chan error
		for range 10 {
			all = append(all, inBackground(func() error { return s.Restart(t.Context()) }))
		}
		time.Sleep(2 * time.Second)
		s.ready()
		for _, err := range all {
			if err := <-err; err != nil {
				t.Error(err)
			}
		}
		if s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "an end that races with a stop", func(t *testing.T) {
		for range 50 {
			s := newStage(plain())
			s.ready()
			var both sync.WaitGroup
			both.Go(func() { s.last().ends <- Outcome{Failure: source.Fail(source.ServerCrashed, "s", "x")} })
			both.Go(func() {
				if err := s.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
			both.Wait()
			s.is(t, source.Stopped)
			s.close(t)
		}
	})
}

func TestStartsAndRestarts(t *testing.T) {
	t.Parallel()
	scene(t, "a start of a running server waits for it", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		started := inBackground(func() error { return s.Start(t.Context()) })
		s.crash()
		failed(t, <-started, source.ServerCrashed)
		started = inBackground(func() error { return s.Start(t.Context()) }) // in backoff: now
		s.ready()
		if err := errors.Join(<-started, s.Start(t.Context())); err != nil {
			t.Error(err)
		}
		if s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "a restart forgets the failures", func(t *testing.T) {
		s := newStage(plain(func(e *mcpconfig.Server) { e.MaxRestarts = 1 }))
		defer s.close(t)
		s.crash()
		time.Sleep(6 * time.Second)
		s.crash()
		s.is(t, source.Parked)
		failed(t, restart(t, s, s.crash), source.ServerCrashed)
		if now := s.is(t, source.Backoff); time.Until(now.NextTry) > 6*time.Second {
			t.Errorf("next try at %v", now.NextTry)
		}
	})
	scene(t, "who doesn't want to wait doesn't", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failed(t, s.Restart(ctx), source.CallTimeout)
		s.ready() // and it is restarted all the same
	})
}

// What survives a stop is reported, to who stopped it and at the end.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T) *stage {
		s := newStage(plain())
		s.stays = make(chan struct{})
		contains(t, failed(t, s.Stop(t.Context()), source.ServerFailed).Error(), "still running")
		s.is(t, source.Stopped)
		return s
	}
	scene(t, "for ever", func(t *testing.T) {
		s := play(t)
		s.close(t)
		if !s.left {
			t.Error("not reported")
		}
	})
	scene(t, "for a while", func(t *testing.T) {
		s := play(t)
		close(s.stays)
		s.close(t)
		if s.left {
			t.Error("reported, but gone")
		}
	})
}

// Events come in order and tell every change once.
func TestEvents(t *testing.T) {
	t.Parallel()
	scene(t, "of a life", func(t *testing.T) {
		s := newStage(plain())
		s.ready()
		s.crash()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Stop(t.Context()); err != nil { // changes nothing
			t.Error(err)
		}
		s.close(t)
		want := []source.State{source.Starting, source.Ready, source.Backoff, source.Stopped}
		last := source.Stopped
		for i, e := range s.events {
			if i >= len(want) || e.State != want[i] || e.From != last || e.Server != "s" || e.Time.IsZero() {
				t.Errorf("event %d: %+v", i, e)
			}
			if (e.Failure != nil) != (e.State == source.Backoff) {
				t.Errorf("event %d: failure %v", i, e.Failure)
			}
			last = e.State
		}
		if len(s.events) != len(want) {
			t.Errorf("%d events", len(s.events))
		}
	})
}
