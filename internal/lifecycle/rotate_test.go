// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/source"
)

// keeps is the option of a kind of server whose runs keep the values of secrets.
func keeps(o *Options) { o.KeepsSecrets = true }

// rotate tells the server that the keys have other values now.
func (s *stage) rotate(keys ...string) {
	_ = s.ask(s.life, func(o *owner) { o.rotate(func(key string) bool { return slices.Contains(keys, key) }) })
}

// uses has the newest run say which secrets it was started with.
func (s *stage) uses(keys ...string) {
	s.last().Show(func(now *source.Status) { now.Secrets = append([]string{}, keys...) })
}

func TestRotate(t *testing.T) {
	scene(t, "who runs with the secret starts again, and says why", func(t *testing.T) {
		s := newStage(plain(), keeps)
		defer s.close(t)
		s.uses("a", "b")
		s.ready()
		s.rotate("c")
		if s.is(t, source.Ready); s.count() != 1 {
			t.Errorf("%d runs after another secret changed", s.count())
		}
		s.rotate("b", "c")
		if s.is(t, source.Starting); s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
		told := slices.ContainsFunc(s.events, func(e source.Event) bool {
			return e.Kind == source.EventWarning && strings.Contains(e.Message, `"b" has changed`)
		})
		if !told {
			t.Errorf("nobody was told: %+v", s.events)
		}
	})
	scene(t, "who resolves secrets for each request goes on", func(t *testing.T) {
		s := newStage(plain())
		defer s.close(t)
		s.uses("a")
		s.ready()
		s.rotate("a")
		if s.is(t, source.Ready); s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "a start that may have read the old value is made again", func(t *testing.T) {
		s := newStage(plain(), keeps)
		defer s.close(t)
		s.is(t, source.Starting)
		s.rotate("a")
		if s.is(t, source.Starting); s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
		s.uses()
		s.rotate("a")
		if s.is(t, source.Starting); s.count() != 2 {
			t.Errorf("%d runs, although the second uses none", s.count())
		}
	})
	scene(t, "who could not be started is looked at", func(t *testing.T) {
		s := newStage(plain(), keeps)
		defer s.close(t)
		s.giveUp()
		s.rotate("a")
		s.is(t, source.Failed)
		s.mended.Store(true)
		s.rotate("a")
		if s.is(t, source.Starting); s.count() != 2 {
			t.Errorf("%d runs", s.count())
		}
	})
	scene(t, "who was stopped stays so", func(t *testing.T) {
		s := newStage(plain(), keeps)
		defer s.close(t)
		s.uses("a")
		s.ready()
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.rotate("a")
		if s.is(t, source.Stopped); s.count() != 1 {
			t.Errorf("%d runs", s.count())
		}
	})
}
