// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// streaming are the ways to serve on which a server can speak during a call.
func streaming(t *testing.T, test func(t *testing.T, r *rig, s *Server, real *sdk)) {
	every(t, func(t *testing.T, r *rig, s *Server, real *sdk) {
		if strings.HasSuffix(t.Name(), "/json") {
			t.Skip("its answers are no streams")
		}
		test(t, r, s, real)
	})
}

// withProgress returns a call with a client's progress token.
func withProgress(token string, c *source.Call) *source.Call {
	params, _ := protocol.ParseObject(c.Params)
	params.Set("_meta", Raw(`{"progressToken":"`+token+`","other":1}`))
	c.Params, c.Progress = params.Raw(), protocol.StringID(token)
	return c
}

func TestProgress(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, _ *rig, s *Server, _ *sdk) {
		var calls sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			calls.Go(func() {
				c := &client{Name: name}
				// The steps take longer than the call has, but for the progress.
				call := of(c, withProgress("of "+name, tool("steps", args{"n": 40, "text": name})))
				result, err := s.Call(t.Context(), within(time.Second, call))
				if err != nil || textOf(t, result) != "40 steps" {
					t.Errorf("%s, %v", result, err)
				}
				heard := c.Heard()
				if len(heard) != 40 {
					t.Errorf("%s heard %d notifications", name, len(heard))
				}
				for _, note := range heard {
					contains(t, note, "notifications/progress", `"progressToken":"of `+name+`"`, `"message":"`+name+`"`)
				}
			})
		}
		calls.Wait()
	})
}

// What a server asks goes to the client whose call's stream it came on, also
// with calls of others in flight.
func TestQuestions(t *testing.T) {
	t.Parallel()
	streaming(t, func(t *testing.T, _ *rig, s *Server, real *sdk) {
		only := strings.HasSuffix(t.Name(), "/sse") // one stream for all
		var calls sync.WaitGroup
		for _, name := range []string{"accept", "decline"} {
			calls.Go(func() {
				c := &client{Name: name, Can: func(_ context.Context, method string, params Raw) (Raw, error) {
					contains(t, method+string(params), protocol.MethodElicit, "for "+name)
					return Raw(`{"action":"` + name + `"}`), nil
				}}
				result, err := s.Call(t.Context(), of(c, tool("ask", args{"text": "for " + name})))
				if err != nil || textOf(t, result) != name {
					t.Errorf("%s, %v", result, err)
				}
			})
			if only {
				calls.Wait()
			}
		}
		calls.Wait()
		if !only {
			return
		}
		other := &client{Name: "other"}
		calls.Go(func() { _, _ = s.Call(t.Context(), of(other, tool("wait", nil))) })
		<-real.running
		result, err := s.Call(t.Context(), of(&client{Name: "me"}, tool("ask", args{"text": "?"})))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, textOf(t, result), "calls of 2 clients are in flight")
		real.let()
		calls.Wait()
	})
}

// What a server says on the stream of a call is for the client of that call; on
// the standing stream it is for the only client with calls in flight, else for
// nobody in particular.
func TestLogMessages(t *testing.T) {
	t.Parallel()
	say := func(word string) string {
		return `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"` + word + "\"}}\n\n"
	}
	standing := make(chan string)
	proceed := make(chan bool)
	w := serve(t, &script{
		call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
			stream(w, say("to the caller "+string(id)))
			<-proceed
			stream(w, `data: {"jsonrpc":"2.0","id":`+string(id)+",\"result\":{}}\n\n")
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			stream(w, ":\n\n")
			for {
				select {
				case word := <-standing:
					stream(w, say(word))
				case <-r.Context().Done():
					return
				}
			}
		},
	})
	r := newRig(t)
	s := r.only(at(w.URL))
	standing <- "to nobody"
	eventually(t, "nobody heard it", func() bool { return len(r.Heard()) == 1 })
	clients := []*client{{Name: "a"}, {Name: "b"}}
	var calls sync.WaitGroup
	for i, c := range clients {
		calls.Go(func() {
			if _, err := s.Call(t.Context(), of(c, tool("x", nil))); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "the caller heard it", func() bool { return len(c.Heard()) > 0 })
		standing <- fmt.Sprint("beside ", i+1)
		eventually(t, "it was heard", func() bool { return len(r.Heard())+len(clients[0].Heard()) == 3+i })
	}
	proceed <- true
	proceed <- true
	calls.Wait()
	contains(t, strings.Join(clients[0].Heard(), " "), "to the caller", "beside 1")
	contains(t, strings.Join(r.Heard(), " "), "to nobody", "beside 2")
	if n := len(clients[1].Heard()); n != 1 {
		t.Errorf("%d notifications for the other client", n)
	}
}

func TestChangesAreAnnounced(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, r *rig, s *Server, real *sdk) {
		if !strings.HasSuffix(t.Name(), "/sse") {
			eventually(t, "there is a session", func() bool { return len(slices.Collect(real.Sessions())) == 1 })
		}
		c := &client{Name: "c"}
		eventually(t, "the change is announced", func() bool {
			if _, err := s.Call(t.Context(), of(c, tool("more", args{"text": "extra"}))); err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(r.Heard(), func(n string) bool {
				return strings.HasPrefix(n, "s "+protocol.NoteToolsChanged)
			})
		})
		if heard := c.Heard(); len(heard) > 0 {
			t.Errorf("the client heard %q", heard)
		}
	})
}

// A session that the server forgot is replaced, and the call that found that out
// is made again.
func TestLostSession(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	w := serve(t, real.streamed(nil))
	r := newRig(t)
	s := r.only(at(w.URL))
	before := use(t, s, "session", nil)
	w.become(real.streamed(nil)) // another handler knows no session
	after := use(t, s, "session", nil)
	if before == after || after == "" {
		t.Errorf("session %q, then %q", before, after)
	}
	if hello, err := s.Hello(t.Context()); err != nil || hello.Generation != 2 {
		t.Errorf("%+v, %v", hello, err)
	}
	want := []source.State{source.Starting, source.Ready, source.Backoff, source.Starting, source.Ready}
	if got := r.States("s"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// The session is ended at the server.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	w := serve(t, real.streamed(nil))
	r := newRig(t)
	s := r.only(at(w.URL))
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.seen(http.MethodDelete); n != 1 {
		t.Errorf("%d DELETE", n)
	}
	if n := len(slices.Collect(real.Sessions())); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	_, err := s.Call(t.Context(), tool("echo", nil))
	contains(t, failed(t, err, source.ServerStopped).Error(), "garra mcp start s")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := use(t, s, "echo", args{"text": "again"}); got != "again" {
		t.Errorf("%q", got)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.each(func(q *http.Request) {
		id, revision := q.Header.Get(headerSession), q.Header.Get(protocol.HeaderRevision)
		if (id == "") != (revision == "") || revision != "" && revision != "2025-11-25" {
			t.Errorf("%s with session %q and revision %q", q.Method, id, revision)
		}
	})
}

// A stream that breaks before the answer is there is resumed.
func TestResumption(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	w := serve(t, real.streamed(&mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}))
	r := newRig(t)
	s := r.only(at(w.URL))
	c := &client{Name: "c"}
	answers := make(chan string, 1)
	go func() { // ends with the call, which the test waits for
		result, err := s.Call(t.Context(), of(c, withProgress("p", tool("steps", args{"n": 10}))))
		if err != nil {
			t.Error(err)
		}
		answers <- string(result)
	}()
	eventually(t, "a step was heard", func() bool { return len(c.Heard()) > 1 })
	w.CloseClientConnections()
	contains(t, <-answers, "10 steps")
	if n := len(c.Heard()); n != 10 {
		t.Errorf("%d steps were heard", n)
	}
	resumed := 0
	w.each(func(q *http.Request) {
		if q.Header.Get(headerLastEvent) != "" {
			resumed++
		}
	})
	if resumed == 0 {
		t.Error("nothing was resumed")
	}
	if got := use(t, s, "later", args{"text": "in the end"}); got != "in the end" {
		t.Errorf("%q", got)
	}
}
