// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// lazy is an entry whose server sleeps after a minute without a call.
func lazy() *mcpconfig.Server {
	return plain(func(e *mcpconfig.Server) { e.Start, e.IdleStop = mcpconfig.StartLazy, time.Minute })
}

// asleep makes sure that the server sleeps.
func (s *stage) asleep(t *testing.T) {
	t.Helper()
	if now := s.is(t, source.Stopped); !now.Asleep || !now.Listed() || s.running() != 0 {
		t.Fatalf("%+v", now)
	}
}

func TestLazyServers(t *testing.T) {
	t.Parallel()
	scene(t, "start once for all first calls", func(t *testing.T) {
		s := newStage(lazy())
		defer s.close(t)
		pass(time.Hour)
		s.asleep(t)
		if s.count() != 0 {
			t.Errorf("%d runs", s.count())
		}
		var calls []<-chan error
		for range 20 {
			calls = append(calls, s.aCall(t))
		}
		s.is(t, source.Starting)
		s.ready()
		for _, call := range calls {
			if err := <-call; err != nil {
				t.Error(err)
			}
		}
		if s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "sleep when nobody used them for long", func(t *testing.T) {
		s := newStage(lazy())
		defer s.close(t)
		for range 3 {
			call := s.aCall(t)
			s.ready()
			if err := <-call; err != nil {
				t.Error(err)
			}
			pass(40 * time.Second)
			s.is(t, source.Ready)
			if err := <-s.aCall(t); err != nil {
				t.Error(err)
			}
			pass(59 * time.Second)
			s.is(t, source.Ready)
			pass(2 * time.Second)
			s.asleep(t)
		}
		if now := s.Status(); now.Restarts != 0 || now.LastError != nil {
			t.Errorf("%+v", now)
		}
	})
}

func TestLazyServersThatAreNeeded(t *testing.T) {
	t.Parallel()
	scene(t, "don't sleep while a call is in flight", func(t *testing.T) {
		s := newStage(lazy())
		defer s.close(t)
		call := s.aCall(t)
		answer := s.last().hang()
		s.ready()
		pass(time.Hour)
		s.is(t, source.Ready)
		answer()
		if err := <-call; err != nil {
			t.Error(err)
		}
		pass(59 * time.Second)
		s.is(t, source.Ready)
		pass(2 * time.Second)
		s.asleep(t)
	})
	scene(t, "don't sleep while somebody wants to hear of something", func(t *testing.T) {
		s := newStage(lazy())
		defer s.close(t)
		wants := func(method string) {
			t.Helper()
			done := inBackground(func() error {
				_, err := s.Call(t.Context(), &source.Call{Method: method, Params: Raw(`{"uri":"a:b"}`)})
				return err
			})
			if s.running() == 1 && s.Status().State == source.Starting {
				s.ready()
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		wants(protocol.MethodSubscribe)
		pass(time.Hour)
		s.is(t, source.Ready)
		wants(protocol.MethodUnsubscribe)
		pass(2 * time.Minute)
		s.asleep(t)
	})
	scene(t, "just when they go to sleep are started again", func(t *testing.T) {
		s := newStage(lazy())
		defer s.close(t)
		s.lag = time.Second
		first := s.aCall(t)
		s.ready()
		if err := <-first; err != nil {
			t.Error(err)
		}
		pass(time.Minute + 500*time.Millisecond)
		s.is(t, source.Stopping)
		second := s.aCall(t)
		pass(time.Second)
		s.ready()
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

func TestLazyServersThatAreSteered(t *testing.T) {
	t.Parallel()
	scene(t, "stay stopped when a person stops them", func(t *testing.T) {
		s := newStage(lazy())
		defer s.close(t)
		before := len(s.events)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		now := s.is(t, source.Stopped)
		if now.Asleep || now.Listed() || len(s.events) == before { // who lists it has to hear of that
			t.Errorf("%+v, %d events", now, len(s.events)-before)
		}
		failed(t, <-s.aCall(t), source.ServerStopped)
	})
	scene(t, "start when they become eager", func(t *testing.T) {
		texts := newTexts(t)
		s := newStage(texts.lazy)
		defer s.close(t)
		s.asleep(t)
		s.apply(texts.base)
		s.is(t, source.Starting)
		s.ready()
		s.apply(texts.lazy)
		synctest.Wait()
		s.is(t, source.Ready)
		pass(2 * time.Minute)
		s.asleep(t)
		s.apply(texts.base)
		s.is(t, source.Starting)
	})
	scene(t, "are started at once for a command", func(t *testing.T) {
		s := newStage(lazy(), func(o *Options) { o.Once = true })
		defer s.close(t)
		s.is(t, source.Starting)
	})
}
