// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A server may close the stream of a long call again and again and be asked for
// the rest later (MCP specification, 2025-11-25, "Transports", resumability).
func TestPolling(t *testing.T) {
	t.Parallel()
	var polls atomic.Int32
	var id atomic.Value
	w := serve(t, &script{
		call: func(w http.ResponseWriter, _ *http.Request, of Raw) {
			id.Store(string(of))
			stream(w, "id: p0\nretry: 1\ndata:\n\n")
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			last := r.Header.Get(headerLastEvent)
			if last == "" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			n := polls.Add(1)
			if want := fmt.Sprint("p", n-1); last != want {
				t.Errorf("poll %d is after %q, want %q", n, last, want)
			}
			if n < 8 {
				stream(w, fmt.Sprintf("id: p%d\ndata:\n\n", n))
				return
			}
			stream(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"a\":1}}\n\n", id.Load()))
		},
	})
	got, err := newRig(t).only(at(w.URL)).Call(t.Context(), tool("x", nil))
	if err != nil || string(got) != `{"a":1}` || polls.Load() != 8 {
		t.Errorf("%s, %v after %d polls", got, err, polls.Load())
	}
}

// A stream that can't be resumed is given up, at once when the server says so.
func TestResumptionInVain(t *testing.T) {
	t.Parallel()
	for status, most := range map[int]int32{400: 1, 404: 1, 405: 1, 500: maxResumes} {
		var asked atomic.Int32
		w := serve(t, &script{
			call: func(w http.ResponseWriter, _ *http.Request, _ Raw) { stream(w, "id: 1\ndata:\n\n") },
			get: func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(headerLastEvent) == "" {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				asked.Add(1)
				w.WriteHeader(status)
			},
		})
		_, err := newRig(t).only(at(w.URL)).Call(t.Context(), tool("x", nil))
		contains(t, failed(t, err, source.ServerCrashed).Error(), "ended before the answer")
		if n := asked.Load(); n != most {
			t.Errorf("%d: asked %d times", status, n)
		}
	}
}

// All calls that meet a lost session are made again on one new session.
func TestLostSessionOfManyCalls(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	w := serve(t, real.streamed(nil))
	r := newRig(t)
	s := r.only(at(w.URL))
	w.become(real.streamed(nil))
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() {
			if got := use(t, s, "echo", args{"text": fmt.Sprint(i)}); got != fmt.Sprint(i) {
				t.Errorf("%q", got)
			}
		})
	}
	calls.Wait()
	if hello, err := s.Hello(t.Context()); err != nil || hello.Generation != 2 {
		t.Errorf("%+v, %v", hello, err)
	}
}

// A server that was started anew is noticed by its standing stream.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	w := serve(t, real.streamed(nil))
	r := newRig(t)
	r.only(at(w.URL))
	eventually(t, "the standing stream is asked for", func() bool { return w.seen(http.MethodGet) > 0 })
	w.become(real.streamed(nil))
	w.CloseClientConnections()
	eventually(t, "the session is replaced", func() bool {
		status := r.Server("s").Status()
		return status.State == source.Ready && status.Hello.Generation > 1
	})
}

// Calls wait for a server that comes back in time.
func TestCallsWait(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	w := serve(t, &script{
		call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `{"fine":true}`) },
		post: func(w http.ResponseWriter, _ *http.Request, m *protocol.Message) bool {
			if !down.Load() {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			if m.Method == protocol.MethodInitialize { // in words of the protocol it is no more than that
				_, _ = w.Write(protocol.NewError(m.ID, protocol.Errorf(protocol.CodeInternal, "down")).Append(nil))
			}
			return true
		},
	})
	r := newRig(t)
	config := sourcetest.Load(t, r.dir, map[string]fields{"s": at(w.URL)})
	config.Servers[0].MaxRestarts, config.Servers[0].RestartDelay = 1000, 10*time.Millisecond
	r.Apply(config)
	contains(t, r.state("s", source.Backoff).LastError.Error(), "503 Service Unavailable")
	result := make(chan error, 1)
	go func() { // ends with the call; the test waits for its error
		_, err := r.Server("s").Call(t.Context(), tool("x", nil))
		result <- err
	}()
	_, err := r.Server("s").Call(t.Context(), within(100*time.Millisecond, tool("x", nil)))
	contains(t, failed(t, err, source.CallTimeout).Error(), "503")
	down.Store(false)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// A server without sessions and without a standing stream.
func TestStatelessServer(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	w := serve(t, real.streamed(&mcp.StreamableHTTPOptions{Stateless: true}))
	r := newRig(t)
	s := r.only(at(w.URL))
	for range 3 {
		if got := use(t, s, "echo", args{"text": "x"}); got != "x" {
			t.Errorf("%q", got)
		}
	}
	if err := s.Stop(t.Context()); err != nil || w.seen(http.MethodDelete) > 0 {
		t.Errorf("%v, %d DELETE", err, w.seen(http.MethodDelete))
	}
}

// An error that answers the request counts, whatever status it comes with.
func TestErrorsWithAStatus(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
		w.Header().Set("Content-Type", typeJSON)
		w.WriteHeader(http.StatusBadRequest)
		const problem = `{"code":-32602,"message":"no such tool","data":{"x":1.0}}`
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, id, problem)
	}})
	_, err := newRig(t).only(at(w.URL)).Call(t.Context(), tool("x", nil))
	e, ok := err.(*protocol.Error) //nolint:errorlint // it is to be this one itself
	if !ok || string(e.Raw()) != `{"code":-32602,"message":"no such tool","data":{"x":1.0}}` {
		t.Errorf("%v", err)
	}
}

// What the server asks is answered with what the client says, also that it
// can't; a question that is taken back is not answered.
func TestAnswers(t *testing.T) {
	t.Parallel()
	replies := make(chan *protocol.Message, 10)
	proceed := make(chan bool)
	w := serve(t, &script{
		call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
			ask := func(of, method string) {
				stream(w, `data: {"jsonrpc":"2.0","id":`+of+`,"method":"`+method+"\"}\n\n")
			}
			ask(`"a"`, protocol.MethodPing)
			ask(`"b"`, protocol.MethodSampling)
			ask(`"c"`, protocol.MethodRootsList)
			ask(`"d"`, protocol.MethodElicit)
			<-proceed
			stream(w, `data: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"d"}}`+"\n\n")
			<-proceed
			stream(w, `data: {"jsonrpc":"2.0","id":`+string(id)+",\"result\":{}}\n\n")
		},
		post: func(_ http.ResponseWriter, _ *http.Request, m *protocol.Message) bool {
			if m.IsResponse() {
				replies <- m
			}
			return false
		},
	})
	takenBack := make(chan bool)
	c := &client{Name: "c", Can: func(ctx context.Context, method string, _ Raw) (Raw, error) {
		switch method {
		case protocol.MethodSampling:
			return Raw(`{"role":"assistant"}`), nil
		case protocol.MethodElicit:
			proceed <- true
			<-ctx.Done()
			close(takenBack)
			return nil, ctx.Err()
		}
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "not here")
	}}
	s := newRig(t).only(at(w.URL))
	go func() { // ends with the call, for which the server waits
		<-takenBack
		proceed <- true
	}()
	if _, err := s.Call(t.Context(), of(c, tool("x", nil))); err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for range 3 {
		m := <-replies
		got = append(got, m.ID.String()+string(m.Result)+string(m.Error))
	}
	slices.Sort(got)
	want := []string{
		`"a"{}`, `"b"{"role":"assistant"}`, `"c"{"code":-32601,"message":"not here"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if len(replies) > 0 {
		t.Errorf("a question that was taken back was answered: %+v", <-replies)
	}
}

// Nothing of a session is left when it is closed in the middle of everything.
func TestCloseDuringCalls(t *testing.T) {
	t.Parallel()
	every(t, func(t *testing.T, r *rig, s *Server, real *sdk) {
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				_, err := s.Call(t.Context(), tool("wait", nil))
				failed(t, err, source.ServerStopped)
			})
		}
		for range 8 {
			<-real.running
		}
		if left := r.Close(t.Context()); len(left) > 0 {
			t.Errorf("left %q", left)
		}
		calls.Wait()
		if !strings.HasSuffix(t.Name(), "/sse") { // there the session ends with the stream
			for range 8 {
				<-real.cancelled
			}
		}
		_, err := s.Hello(t.Context())
		failed(t, err, source.ServerStopped)
		r.Apply(sourcetest.Load(t, r.dir, map[string]fields{"late": at("http://127.0.0.1:1")}))
		if r.Server("late") != nil {
			t.Error("it took a server after its end")
		}
	})
}

// A server that doesn't let go doesn't hold anybody up.
func TestCloseOfASilentServer(t *testing.T) {
	t.Parallel()
	w := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			hang(r)
			return
		}
		(&script{call: func(_ http.ResponseWriter, r *http.Request, _ Raw) { hang(r) }}).ServeHTTP(w, r)
	}))
	r := newRig(t, limited(func(l *limits) { l.bye = 100 * time.Millisecond }))
	s := r.only(at(w.URL))
	began := time.Now()
	if err := s.Stop(t.Context()); err != nil || time.Since(began) > patience/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

// A session that its server forgot is replaced without taking leave of it.
func TestLeaveOfAForgottenSession(t *testing.T) {
	t.Parallel()
	calls := 0
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
		if calls++; calls == 1 {
			http.NotFound(w, nil)
			return
		}
		answerJSON(w, id, `{"fine":true}`)
	}})
	s := newRig(t).only(at(w.URL))
	if _, err := s.Call(t.Context(), tool("x", nil)); err != nil || s.Status().Restarts != 1 {
		t.Errorf("%v, %+v", err, s.Status())
	}
	if n := w.seen(http.MethodDelete); n != 0 {
		t.Errorf("%d DELETE", n)
	}
}

// Headers that others can read are worth a word.
func TestUnencryptedHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		want bool
	}{
		{"http://example.invalid/", true},
		{"https://example.invalid/", false},
		{"http://localhost:1/", false},
		{"http://127.0.0.1:1/", false},
		{"http://10.0.0.1:1/", true},
	} {
		limits := quick()
		options := &Options{limits: &limits}
		entry := entryOf("s")
		entry.URL, entry.Headers = c.url, map[string]string{"A": "b"}
		to, f := newTarget(entry, options, nil).resolve(t.Context())
		if f != nil || to.exposed() != c.want {
			t.Errorf("%s: %v, %v", c.url, to.exposed(), f)
		}
	}
}

// Notifications and oddities that come in masses are told a few times.
func TestMuchTrouble(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
		stream(w, strings.Repeat("data: nonsense\n\n", 100))
		_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+string(id)+",\"result\":{}}\n\n")
	}})
	r := newRig(t)
	if _, err := r.only(at(w.URL)).Call(t.Context(), tool("x", nil)); err != nil {
		t.Error(err)
	}
	warnings := 0
	for _, e := range r.Events() {
		if e.Kind == source.EventWarning {
			warnings++
		}
	}
	if warnings != lifecycle.MaxTold || r.Saw("counted, not told") == "" {
		t.Errorf("%d warnings", warnings)
	}
}
