// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A life is a random sequence of what may happen to a server, and what must
// hold after each step.
type life struct {
	*stage
	t       *rapid.T
	entry   *mcpconfig.Server // in force
	all     map[string]*mcpconfig.Server
	waiting sync.WaitGroup // for the outcomes of commands and calls
	answers []func()       // of calls that last, each given once
}

// TestAnyLife plays random lives, each in a bubble of its own.
func TestAnyLife(t *testing.T) {
	t.Parallel()
	texts := newTexts(t)
	all := map[string]*mcpconfig.Server{
		"base": texts.base, "moved": texts.moved, "policy": texts.policy,
		"process": texts.process, "disabled": texts.disabled, "lazy": texts.lazy,
	}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) { play(rt, all) })
	})
}

// play plays one life.
func play(rt *rapid.T, all map[string]*mcpconfig.Server) {
	l := &life{t: rt, all: all}
	l.entry = l.text(rt)
	l.stage = newStage(l.entry, sharing(Shared{
		Drain: 5 * time.Second, Rate: new(backoff.Rate), History: history.New(),
	}))
	defer l.finish()
	l.lag = time.Duration(rapid.IntRange(0, 3).Draw(rt, "lag")) * time.Second
	rt.Repeat(map[string]func(*rapid.T){
		"start":   func(*rapid.T) { l.command("start", l.Start) },
		"stop":    func(*rapid.T) { l.command("stop", l.Stop) },
		"restart": func(*rapid.T) { l.command("restart", l.Restart) },
		"wait for": func(*rapid.T) {
			l.command("hello", func(ctx Context) error { _, err := l.Hello(ctx); return err })
		},
		"call": func(*rapid.T) {
			l.command("call", func(ctx Context) error { _, err := l.Call(ctx, &source.Call{Method: "x"}); return err })
		},
		"apply": l.edit,
		"ready": l.becomesReady,
		"crash": func(*rapid.T) { l.ends(Outcome{Failure: source.Fail(source.ServerCrashed, "s", "x")}) },
		"forget": func(*rapid.T) {
			l.ends(Outcome{Failure: source.Fail(source.ServerCrashed, "s", "x"), Forgotten: true})
		},
		"give up": func(*rapid.T) {
			if l.run() != nil && l.Status().State == source.Ready {
				rt.Skip("a start only")
			}
			l.ends(Outcome{Failure: source.Fail(source.ServerFailed, "s", "x"), Permanent: true})
		},
		"answer": func(rt *rapid.T) {
			if len(l.answers) == 0 {
				rt.Skip("nothing lasts")
			}
			l.answers[0]()
			l.answers = l.answers[1:]
		},
		"mend": func(rt *rapid.T) { l.mended.Store(rapid.Bool().Draw(rt, "mended")) },
		"wait": func(rt *rapid.T) {
			time.Sleep(time.Duration(rapid.IntRange(1, 400_000).Draw(rt, "ms")) * time.Millisecond)
		},
		"": l.check,
	})
}

// command does something in the background; it must have an outcome, once.
func (l *life) command(name string, do func(Context) error) {
	wait := time.Duration(rapid.IntRange(1, 100).Draw(l.t, name+" patience")) * time.Second
	l.waiting.Go(func() { // ends in time; finish waits for it
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		_ = do(ctx) // any outcome is one
	})
}

func (l *life) edit(t *rapid.T) {
	l.entry = l.text(t)
	l.apply(l.entry)
}

// text picks a text of the entry.
func (l *life) text(t *rapid.T) *mcpconfig.Server {
	names := slices.Sorted(maps.Keys(l.all))
	return l.all[rapid.SampledFrom(names).Draw(t, "text")]
}

// run is the run that goes on, nil when there is none.
func (l *life) run() *played {
	synctest.Wait()
	if l.running() == 0 {
		return nil
	}
	return l.last()
}

func (l *life) becomesReady(t *rapid.T) {
	if l.run() == nil {
		t.Skip("nothing runs")
	}
	l.last().link.answered.Store(rapid.Bool().Draw(t, "answered"))
	if rapid.Bool().Draw(t, "slow") && l.last().link.hold == nil {
		l.answers = append(l.answers, l.last().hang())
	}
	l.ready()
}

func (l *life) ends(out Outcome) {
	p := l.run()
	if p == nil {
		l.t.Skip("nothing runs")
	}
	select {
	case p.ends <- out:
	default: // it is about to end already
	}
}

// check is what must hold at any time.
func (l *life) check(t *rapid.T) {
	synctest.Wait()
	for _, bad := range l.problems() {
		t.Fatal(bad)
	}
	now := l.current.Load()
	status, running := now.status, l.running()
	alive := status.State == source.Starting || status.State == source.Ready || status.State == source.Stopping
	switch {
	case alive != (running == 1):
		t.Fatalf("%s with %d runs", status.State, running)
	case now.entry != l.entry:
		t.Fatal("another text is in force")
	case !l.entry.Enabled && status.State != source.Disabled && status.State != source.Stopping:
		t.Fatalf("disabled, but %s", status.State)
	case l.entry.Enabled && status.State == source.Disabled:
		t.Fatal("enabled, but disabled")
	case (status.State == source.Ready) != (now.link != nil), (status.State == source.Ready) != (status.Hello != nil):
		t.Fatalf("%s with link %v", status.State, now.link != nil)
	case status.NextTry.IsZero() == (status.State == source.Backoff || status.State == source.Parked):
		t.Fatalf("%s with its next try at %v", status.State, status.NextTry)
	case !status.NextTry.IsZero() && time.Until(status.NextTry) > backoff.ParkedEvery*11/10:
		t.Fatalf("next try in %v", time.Until(status.NextTry))
	case status.Asleep && status.State != source.Stopped && status.State != source.Stopping:
		t.Fatalf("%s and asleep", status.State)
	case status.Asleep && l.entry.Start != mcpconfig.StartLazy:
		t.Fatal("asleep, but eager")
	case status.State == source.Failed && status.LastError == nil:
		t.Fatal("failed for no reason")
	}
}

// finish ends the life, also one in which something was wrong: nobody waits any
// more then, and nothing runs or starts.
func (l *life) finish() {
	l.end(source.Fail(source.ServerStopped, "s", "garra is stopping"))
	<-l.done
	for _, answer := range l.answers {
		answer()
	}
	before := l.count()
	l.waiting.Wait()
	time.Sleep(time.Hour)
	synctest.Wait()
	if l.running() != 0 || l.count() != before {
		l.t.Errorf("%d runs after the end", l.running())
	}
}
