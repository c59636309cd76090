// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// inFlight makes a call that hangs until the test ends.
func inFlight(t *testing.T, s *Server, who source.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends when the test does; the cleanup waits for it
		defer close(done)
		_, _ = s.Call(ctx, from(who, tool("hang", nil))) // it is cancelled
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	eventually(t, "the call is in flight", func() bool {
		l := linkOf(s)
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, c := range l.pending {
			if c.client == who {
				return true
			}
		}
		return false
	})
}

// answers is a client's answer to any question.
func answers(_ context.Context, method string, _ Raw) (Raw, error) {
	return Raw(`{"to":"` + method + `","big":9007199254740993}`), nil
}

func TestQuestionsOfAServer(t *testing.T) {
	t.Parallel()
	t.Run("go to the client that calls", func(t *testing.T) {
		t.Parallel()
		s := newRig(t).only(misbehaving())
		who := &client{Name: "a", Can: answers}
		for tool1, method := range map[string]string{
			"ask_roots":       "roots/list",
			"ask_sampling":    "sampling/createMessage",
			"ask_elicitation": "elicitation/create",
		} {
			result, err := s.Call(t.Context(), from(who, tool(tool1, args{"text": "?"})))
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, result); got != `{"to":"`+method+`","big":9007199254740993}` {
				t.Errorf("%s: %s", tool1, got)
			}
		}
	})
	t.Run("take the client's refusal back", func(t *testing.T) {
		t.Parallel()
		s := newRig(t).only(misbehaving())
		result, err := s.Call(t.Context(), from(&client{Name: "a"}, tool("ask_roots", nil)))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, textOf(t, result), "-32601", "the client can't be asked roots/list")
	})
	t.Run("of several calls of one client", func(t *testing.T) {
		t.Parallel()
		s := newRig(t).only(misbehaving())
		who := &client{Name: "a", Can: answers}
		inFlight(t, s, who)
		result, err := s.Call(t.Context(), from(who, tool("ask_roots", nil)))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, textOf(t, result), "9007199254740993")
	})
	t.Run("fail at once when they may be for several", func(t *testing.T) {
		t.Parallel()
		s := newRig(t).only(misbehaving())
		a, b := &client{Name: "a", Can: answers}, &client{Name: "b", Can: answers}
		inFlight(t, s, b)
		result, err := s.Call(t.Context(), from(a, tool("ask_sampling", args{"text": "for a"})))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, textOf(t, result), "calls of 2 clients are in flight", "sharing: session")
		if len(a.Questions())+len(b.Questions()) != 0 {
			t.Errorf("asked a %q, b %q", a.Questions(), b.Questions())
		}
	})
}

func TestQuestionsOutsideOfCalls(t *testing.T) {
	t.Parallel()
	t.Run("go to the hook when no client calls", func(t *testing.T) {
		t.Parallel()
		s := newRig(t, func(o *Options) {
			o.Hooks.Request = func(_ Context, from source.Origin, method string, _ Raw) (Raw, error) {
				return Raw(`"` + from.Server + " " + method + `"`), nil
			}
		}).only(misbehaving())
		if got := use(t, s, "ask_roots", nil); got != `"s roots/list"` {
			t.Errorf("%q", got)
		}
	})
	t.Run("are refused when nobody is there", func(t *testing.T) {
		t.Parallel()
		s := newRig(t).only(misbehaving())
		contains(t, use(t, s, "ask_roots", nil), "-32601", "no client is there to ask")
	})
	t.Run("end with the server", func(t *testing.T) {
		t.Parallel()
		s := newRig(t).only(misbehaving())
		asked := make(chan struct{})
		who := &client{Name: "a", Can: func(ctx context.Context, _ string, _ Raw) (Raw, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		done := make(chan error, 1)
		go func() { // ends with the server; the test waits for it
			_, err := s.Call(t.Context(), from(who, tool("ask_roots", nil)))
			done <- err
		}()
		<-asked
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		failed(t, <-done, source.ServerStopped)
	})
}

// A server that asks and asks finds an end of it, and neither its calls nor
// others suffer.
func TestFloodOfQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	var most, open atomic.Int64
	release := make(chan struct{})
	who := &client{Name: "a", Can: func(context.Context, string, Raw) (Raw, error) {
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-release
		return nil, protocol.Errorf(protocol.CodeInternal, "no")
	}}
	inFlight(t, s, who)
	result, err := s.Call(t.Context(), from(who, tool("ask_flood", args{"method": "roots/list", "n": 5000})))
	if err != nil || textOf(t, result) != "asked" {
		t.Errorf("%s, %v", result, err)
	}
	eventually(t, "as many as may be are asked", func() bool { return open.Load() == maxAsked })
	if got := use(t, s, "echo", args{"text": "still here"}); got != "still here" {
		t.Errorf("%q", got)
	}
	close(release)
	if most.Load() != maxAsked || r.Saw("requests wait for an answer already") == "" {
		t.Errorf("%d at the same time", most.Load())
	}
	eventually(t, "there is room again", func() bool {
		l := linkOf(s)
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.asked) == 0
	})
	contains(t, use(t, s, "ask_flood", args{"method": "ping", "n": 10}), "asked")
}

func TestNotificationsOfAServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	told := func(text string) bool {
		return slices.ContainsFunc(r.Heard(), func(n string) bool { return strings.Contains(n, text) })
	}
	// A log line belongs to the only client that calls.
	a, b := &client{Name: "a"}, &client{Name: "b"}
	if _, err := s.Call(t.Context(), from(a, tool("log", args{"level": "info", "text": "one"}))); err != nil {
		t.Fatal(err)
	}
	if heard := a.Heard(); len(heard) != 1 || told("one") {
		t.Errorf("a heard %q; told elsewhere: %v", heard, told("one"))
	}
	// Of two clients it is anybody's, and of none too.
	inFlight(t, s, b)
	if _, err := s.Call(t.Context(), from(a, tool("log", args{"level": "info", "text": "two"}))); err != nil {
		t.Fatal(err)
	}
	if len(a.Heard()) != 1 || len(b.Heard()) != 0 || !told("two") {
		t.Errorf("a heard %q, b %q; told elsewhere: %v", a.Heard(), b.Heard(), told("two"))
	}
	// What concerns the server as a whole goes to who watches it.
	for _, method := range []string{
		"notifications/tools/list_changed", "notifications/resources/list_changed",
		"notifications/prompts/list_changed", "notifications/resources/updated", "notifications/of/a/vendor",
	} {
		c := from(a, tool("emit", args{"method": method, "params": args{"n": 1}}))
		if _, err := s.Call(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if !told("s " + method + ` {"n":1}`) {
			t.Errorf("%s was not told", method)
		}
	}
	// garra's answers can't be cancelled; the notification goes nowhere.
	use(t, s, "emit", args{"method": "notifications/cancelled", "params": args{"requestId": 1}})
	if told("notifications/cancelled") || len(a.Heard()) != 1 {
		t.Error("notifications/cancelled was passed on")
	}
}

// running makes a call that lasts until ctx ends, and returns once the server is
// at it. The server writes the marker when it is told that the call is cancelled.
func running(ctx context.Context, t *testing.T, s *Server, marker string) <-chan error {
	t.Helper()
	who := &client{Name: "runner"}
	c := from(who, tool("progress", args{"n": 10_000, "ms": 20, "marker": marker}))
	c = withProgress(c, protocol.StringID("p"))
	done := make(chan error, 1)
	go func() { // ends with ctx; the channel's reader waits for it
		_, err := s.Call(ctx, c)
		done <- err
	}()
	eventually(t, "the server is at it", func() bool { return len(who.Heard()) > 0 })
	return done
}

// Notify reaches the server, and is dropped when there is none.
func TestNotifyingAServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	marker := filepath.Join(r.dir, "cancelled")
	s := r.only(misbehaving().Writing(marker))
	ctx, cancel := context.WithCancel(t.Context())
	done := running(ctx, t, s, marker)
	s.Notify(protocol.NoteCancelled, Raw(`{"requestId":2}`)) // initialize was 1
	eventually(t, "the server has heard it", func() bool { return exists(marker) })
	cancel()
	failed(t, <-done, source.CallCancelled)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Notify(protocol.NoteRootsChanged, nil)
	if s.Status().State != source.Stopped || r.Saw("did not take") != "" {
		t.Errorf("%+v", s.Status())
	}
}

// Asking and being asked at the same time doesn't lock anything up.
func TestQuestionsAndCallsTogether(t *testing.T) {
	t.Parallel()
	s := newRig(t).only(misbehaving())
	who := &client{Name: "a", Can: func(context.Context, string, Raw) (Raw, error) {
		text := strings.Repeat("y", 200<<10)
		return Raw(`"` + text + `"`), nil
	}}
	began := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			result, err := s.Call(t.Context(), from(who, tool("ask_roots", nil)))
			if err != nil || len(result) < 200<<10 {
				t.Errorf("%d bytes, %v", len(result), err)
			}
		})
		all.Go(func() {
			result, err := s.Call(t.Context(), from(who, tool("echo", args{"text": strings.Repeat("z", 300<<10)})))
			if err != nil || len(result) < 300<<10 {
				t.Errorf("%d bytes, %v", len(result), err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > patience {
		t.Errorf("%v", took)
	}
}
