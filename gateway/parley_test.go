// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/policy"
	"github.com/garraia/garra/source"
)

// abandoned is a call at a server whose client was asked something, and which ends
// when it is told to.
func abandoned(g *Gateway, u *upstream, state string) *parley {
	s := g.newSession(single{g, u.name}, "alice", deaf{})
	p := &parley{gateway: g, session: s, open: &question{from: u}, over: make(chan struct{})}
	p.life, p.end = context.WithCancelCause(context.Background())
	context.AfterFunc(p.life, func() { close(p.over) })
	g.parleys.put(state, p)
	return p
}

// A client that was asked and doesn't come back keeps others from being asked for a
// minute, where there are any, and else its place for five.
func TestAnAbandonedQuestionMakesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{})
		entry := mcpconfig.NewServer("a", mcpconfig.Position{}, mcpconfig.Settings{})
		rules, err := policy.Compile(entry)
		if err != nil {
			t.Fatal(err)
		}
		u, other := newUpstream(g, entry, rules, nil), newUpstream(g, entry, rules, nil)
		s := g.newSession(single{g, "a"}, "bob", deaf{})
		p, elsewhere := abandoned(g, u, "garra:1"), abandoned(g, other, "garra:2")

		<-time.After(parleyHold - time.Second)
		g.parleys.makeWay(u, s)
		if p.life.Err() != nil {
			t.Error("a question gave way while its client may still come back")
		}
		<-time.After(2 * time.Second)
		g.parleys.makeWay(u, s)
		if cause, ok := errors.AsType[*source.CancelError](context.Cause(p.life)); !ok || cause.Reason == "" {
			t.Errorf("it did not give way: %v", context.Cause(p.life))
		}
		if g.parleys.take("garra:1", func(*parley) bool { return true }) != nil {
			t.Error("a call that has ended is taken up")
		}
		if elsewhere.life.Err() != nil {
			t.Error("one of another server gave way")
		}
		<-time.After(parleyTTL)
		if elsewhere.life.Err() == nil {
			t.Error("nobody else needs the server, and its client never comes back; it waits on")
		}
	})
}

// Who can't be asked needs no way.
func TestWhoCanBeAsked(t *testing.T) {
	g := New(Options{})
	for capabilities, want := range map[string]bool{
		`{}`: false, `{"elicitation":{}}`: true, `{"sampling":{}}`: true, `{"tasks":{}}`: false,
	} {
		s := g.newSession(aggregate{g}, "alice", deaf{})
		s.caps = Raw(capabilities)
		if got := (&exchange{session: s}).canBeAsked(); got != want {
			t.Errorf("%s: %v", capabilities, got)
		}
	}
}
