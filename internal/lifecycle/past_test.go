// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// sharing makes servers share something.
func sharing(shared Shared) func(*Options) { return func(o *Options) { o.Shared = shared } }

// hang makes the calls over a link last until the returned function is called.
func (p *played) hang() (answer func()) {
	over := make(chan struct{})
	p.link.hold = over
	return func() { close(over) }
}

// aCall makes a call in the background.
func (s *stage) aCall(t *testing.T) <-chan error {
	t.Helper()
	return inBackground(func() error {
		_, err := s.Call(t.Context(), &source.Call{Method: "x"})
		return err
	})
}

func TestCallsInFlightHaveTheirTime(t *testing.T) {
	t.Parallel()
	const drain = 10 * time.Second
	busy := func(t *testing.T) (s *stage, call <-chan error, answer func()) {
		t.Helper()
		s = newStage(plain(), sharing(Shared{Drain: drain}))
		answer = s.last().hang()
		s.ready()
		return s, s.aCall(t), answer
	}
	scene(t, "until they are answered", func(t *testing.T) {
		s, call, answer := busy(t)
		defer s.close(t)
		stopped := inBackground(func() error { return s.Stop(t.Context()) })
		pass(drain / 2)
		s.is(t, source.Stopping)
		answer()
		synctest.Wait()
		s.is(t, source.Stopped)
		if err := <-call; err != nil {
			t.Error(err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	scene(t, "and no more than that", func(t *testing.T) {
		s, _, answer := busy(t)
		defer s.close(t)
		defer answer()
		began := time.Now()
		if err := s.Stop(t.Context()); err != nil || time.Since(began) != drain {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	scene(t, "while new ones wait for the next run", func(t *testing.T) {
		s, first, answer := busy(t)
		defer s.close(t)
		restarted := inBackground(func() error { return s.Restart(t.Context()) })
		second := s.aCall(t)
		if s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
		answer()
		s.ready()
		for _, done := range []<-chan error{first, restarted, second} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "unless the run ends by itself", func(t *testing.T) {
		s, _, answer := busy(t)
		defer s.close(t)
		defer answer()
		stopped := inBackground(func() error { return s.Stop(t.Context()) })
		s.crash()
		if err := <-stopped; err != nil {
			t.Errorf("it has stopped, and somehow: %v", err)
		}
		s.is(t, source.Stopped)
	})
	scene(t, "and what is idle stops at once", func(t *testing.T) {
		s := newStage(plain(), sharing(Shared{Drain: drain}))
		defer s.close(t)
		s.ready()
		began := time.Now()
		if err := s.Stop(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// Each end of a run is remembered, with its cause.
func TestStopsAreRemembered(t *testing.T) {
	t.Parallel()
	scene(t, "with their causes", func(t *testing.T) {
		s := newStage(plain(), sharing(Shared{History: history.New()}))
		s.ready()
		pass(1500 * time.Millisecond)
		s.crash()
		pass(time.Minute)
		s.ready()
		if err := restart(t, s, s.ready); err != nil {
			t.Error(err)
		}
		s.close(t)
		want := []source.Stop{
			{Uptime: 1.5, Cause: source.CauseCrashed, Message: "it crashed"},
			{Cause: source.CauseStopped, Message: "somebody restarted it"},
			{Cause: source.CauseStopped, Message: "garra is stopping"},
		}
		got := s.Stops()
		if len(got) != len(want) {
			t.Fatalf("%+v", got)
		}
		if got[0].Uptime != want[0].Uptime {
			t.Errorf("uptime %v", got[0].Uptime)
		}
		for i := range want {
			if got[i].Cause != want[i].Cause || got[i].Message != want[i].Message {
				t.Errorf("stop %d: %+v, want %+v", i, got[i], want[i])
			}
		}
	})
}

// A restart of garra doesn't give a server that keeps failing a new budget.
func TestTheBudgetSurvives(t *testing.T) {
	t.Parallel()
	texts := newTexts(t)
	scene(t, "a restart of garra", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "history.jsonl")
		crashes := 0
		for _, most := range []int{1, 100, 1} { // in one life of garra
			past, err := history.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			s := newStage(texts.base, sharing(Shared{History: past}))
			for range most {
				s.crash()
				crashes++
				if s.Status().State == source.Parked {
					break
				}
				pass(time.Until(s.is(t, source.Backoff).NextTry))
			}
			if parked := s.Status().State == source.Parked; parked != (crashes > texts.base.MaxRestarts) {
				t.Errorf("%s after %d crashes", s.Status().State, crashes)
			}
			s.close(t)
			past.Close()
		}
		if want := texts.base.MaxRestarts + 2; crashes != want { // the first start of each life is free
			t.Errorf("%d crashes, want %d", crashes, want)
		}
	})
	scene(t, "but not an edit", func(t *testing.T) {
		past := history.New()
		s := newStage(texts.base, sharing(Shared{History: past}))
		for range texts.base.MaxRestarts + 1 {
			s.crash()
			pass(backoff.MaxDelay)
		}
		s.close(t)
		edited := newStage(texts.process, sharing(Shared{History: past}))
		defer edited.close(t)
		edited.crash()
		edited.is(t, source.Backoff)
	})
}

// However many servers fail at once, no more of them are started in a time than the rate.
func TestRestartsOfAllServersAreBounded(t *testing.T) {
	t.Parallel()
	scene(t, "by one rate", func(t *testing.T) {
		rate := new(backoff.Rate)
		quick := func(e *mcpconfig.Server) { e.RestartDelay, e.MaxRestarts = 100*time.Millisecond, 1000 }
		var all []*stage
		for range 50 {
			all = append(all, newStage(plain(quick), sharing(Shared{Rate: rate})))
		}
		began := time.Now()
		for time.Since(began) < time.Minute {
			for _, s := range all {
				if s.running() > 0 {
					s.crash()
				}
			}
			pass(50 * time.Millisecond)
		}
		starts := -len(all) // the first ones are free
		for _, s := range all {
			starts += s.count()
			s.close(t)
		}
		if limit := backoff.RateBurst + int(time.Minute/backoff.RateEvery) + 1; starts > limit || starts < limit-5 {
			t.Errorf("%d restarts in a minute, want about %d", starts, limit)
		}
	})
}
