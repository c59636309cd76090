// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A script is a server that makes the handshake well, and answers every call as
// it is told.
type script struct {
	call func(w http.ResponseWriter, r *http.Request, id Raw)
	get  http.HandlerFunc // of the standing stream; nil is 405
	post func(w http.ResponseWriter, r *http.Request, m *protocol.Message) bool
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet && s.get != nil {
			s.get(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := protocol.Parse(body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case s.post != nil && s.post(w, r, m):
	case m.Method == protocol.MethodInitialize:
		w.Header().Set(headerSession, "the-session")
		answerJSON(w, m.ID.Raw(), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}`)
	case m.Method == protocol.MethodPing:
		answerJSON(w, m.ID.Raw(), `{}`)
	case m.IsRequest():
		s.call(w, r, m.ID.Raw())
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func answerJSON(w http.ResponseWriter, id Raw, result string) {
	w.Header().Set("Content-Type", typeJSON)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// stream begins a stream of events.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", typeStream)
	_, _ = io.WriteString(w, text)
	w.(http.Flusher).Flush()
}

// hang waits until the client goes away.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server look for that
	<-r.Context().Done()
}

// cut ends the connection.
func cut() { panic(http.ErrAbortHandler) }

// Whatever a server does to one call, it is answered with a reason, and the
// next one works.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		do   func(w http.ResponseWriter, r *http.Request, id Raw)
		code source.Code
		text string
	}{
		{
			"drops the connection", func(http.ResponseWriter, *http.Request, Raw) { cut() },
			source.ServerCrashed, "gave no answer",
		},
		{"drops it within the answer", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			w.Header().Set("Content-Length", "1000")
			answerJSON(w, id, `{"content":[`)
			w.(http.Flusher).Flush()
			cut()
		}, source.ServerCrashed, "ended before the answer"},
		{"ends the stream without an answer", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
			stream(w, ": nothing\n\n")
		}, source.ServerCrashed, "ended before the answer"},
		{"drops the stream", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			stream(w, `data: {"jsonrpc":"2.0","id":`+string(id)+`,"res`)
			cut()
		}, source.ServerCrashed, "ended before the answer"},
		{
			"never answers", func(_ http.ResponseWriter, r *http.Request, _ Raw) { hang(r) },
			source.CallTimeout, "no answer within",
		},
		{
			"stalls in a stream", func(w http.ResponseWriter, r *http.Request, _ Raw) {
				stream(w, ":\n")
				hang(r)
			},
			source.CallTimeout, "no answer within",
		},
		{"stalls in a body", func(w http.ResponseWriter, r *http.Request, id Raw) {
			answerJSON(w, id, `{"content":[`)
			w.(http.Flusher).Flush()
			hang(r)
		}, source.CallTimeout, "no answer within"},
		{
			"answers another id", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
				answerJSON(w, Raw("4711"), "{}")
			},
			source.ServerFailed, "not one to the request",
		},
		{"answers another id on a stream", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n\n")
		}, source.ServerCrashed, "ended before the answer"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
			w.Header().Set("Content-Type", typeJSON)
			_, _ = io.WriteString(w, "oops")
		}, source.ServerFailed, "not one to the request"},
		{"no message", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			w.Header().Set("Content-Type", typeJSON)
			fmt.Fprintf(w, `{"id":%s,"result":1}`, id)
		}, source.ServerFailed, "no MCP message"},
		{"HTML", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<h1>hello</h1>")
		}, source.ServerFailed, `"text/html"`},
		{
			"accepts a request", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
				w.WriteHeader(http.StatusAccepted)
			},
			source.ServerFailed, "202 Accepted",
		},
		{"too large", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			answerJSON(w, id, `"`+strings.Repeat("x", 1<<20)+`"`)
		}, source.FrameTooLarge, "over the limit"},
		{"a large event", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			stream(w, `data: {"jsonrpc":"2.0","id":`+string(id)+`,"result":"`+strings.Repeat("x", 1<<20)+"\"}\n\n")
		}, source.FrameTooLarge, "over the limit"},
		{"an event without an end", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
			stream(w, "data: ")
			for w := io.Writer(w); ; {
				if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
					return
				}
			}
		}, source.ServerCrashed, "without an end"},
		{"large once unpacked", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", typeJSON)
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":"%s"}`, id, strings.Repeat("x", 2<<20))
			_ = z.Close()
		}, source.FrameTooLarge, "over the limit"},
		{"endless headers", func(w http.ResponseWriter, _ *http.Request, id Raw) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
			answerJSON(w, id, "{}")
		}, source.ServerCrashed, "header"},
		{
			"an internal error", func(w http.ResponseWriter, _ *http.Request, _ Raw) {
				w.WriteHeader(http.StatusBadGateway)
			},
			source.ServerFailed, "502 Bad Gateway",
		},
		{
			"forbids", func(w http.ResponseWriter, _ *http.Request, _ Raw) { w.WriteHeader(http.StatusForbidden) },
			source.ServerFailed, "headers",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			w := serve(t, &script{call: func(w http.ResponseWriter, r *http.Request, id Raw) {
				if calls.Add(1) > 1 {
					answerJSON(w, id, `{"fine":true}`)
					return
				}
				test.do(w, r, id)
			}})
			r := newRig(t, limited(func(l *limits) { l.frame = 512 << 10 }))
			s := r.only(at(w.URL))
			timeout := time.Minute
			if test.code == source.CallTimeout {
				timeout = 300 * time.Millisecond
			}
			_, err := s.Call(t.Context(), within(timeout, tool("x", nil)))
			contains(t, failed(t, err, test.code).Error(), test.text)
			result, err := s.Call(t.Context(), tool("y", nil))
			if err != nil || string(result) != `{"fine":true}` {
				t.Errorf("the next call: %s, %v", result, err)
			}
			if got := r.States("s"); len(got) != 2 {
				t.Errorf("went through %v", got)
			}
		})
	}
}

// Whatever it answers reaches the client byte for byte.
func TestFidelity(t *testing.T) {
	t.Parallel()
	const result = `{"z":1.0,"a" : 12345678901234567890, "é":"é","\u0061":[ ],"resultType":"x","_meta":{"k":null}}`
	for _, over := range []string{"json", "event", "lines", "packed"} {
		w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
			text := `{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`
			switch over {
			case "json":
				answerJSON(w, id, result)
			case "event":
				stream(w, "\ufeff: hi\r\nevent: message\r\nid: 1\r\ndata:"+text+"\r\n\r\n")
			case "lines":
				stream(w, "event: ping\ndata: {}\n\ndata: "+strings.Replace(text, `,"id"`, "\ndata: ,\"id\"", 1)+"\n\n")
			case "packed":
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, text)
				_ = z.Close()
			}
		}})
		s := newRig(t).only(at(w.URL))
		got, err := s.Call(t.Context(), tool("x", nil))
		if err != nil || string(got) != result {
			t.Errorf("%s: %s, %v", over, got, err)
		}
	}
}

// What is not MCP at the url, or not for garra, makes the server failed, with a
// way out.
func TestHopelessServers(t *testing.T) {
	t.Parallel()
	elsewhere := serve(t, http.NotFoundHandler())
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
	}
	for _, test := range []struct {
		name    string
		handler http.Handler
		parts   []string
	}{
		{
			"401", status(401, "bad token open-sesame"),
			[]string{
				"401 Unauthorized", `"bad token [redacted:headers.Authorization]"`,
				"the Authorization in headers (mcp.json:4)",
			},
		},
		{"403", status(403, ""), []string{"403 Forbidden", "headers", "log in"}},
		{"404", status(404, ""), []string{"404 Not Found", "url is right"}},
		{"405", status(405, ""), []string{"405 Method Not Allowed", "url and type"}},
		{"HTML", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<!DOCTYPE html><title>x</title>")
		}), []string{"200 OK", `"text/html"`, "MCP server"}},
		{
			"a redirect", http.RedirectHandler(elsewhere.URL+"/secret", http.StatusTemporaryRedirect),
			[]string{"307", elsewhere.URL, "not followed", "write its address in url"},
		},
		{"a redirect that makes it a GET", http.RedirectHandler("/x", http.StatusFound), []string{"302", "a redirect"}},
		{"another protocol", &script{post: func(w http.ResponseWriter, _ *http.Request, m *protocol.Message) bool {
			answerJSON(w, m.ID.Raw(), `{"protocolVersion":"1999-01-01"}`)
			return true
		}}, []string{`"1999-01-01"`}},
		{"an error", &script{post: func(w http.ResponseWriter, _ *http.Request, m *protocol.Message) bool {
			w.Header().Set("Content-Type", typeJSON)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"closed today"}}`, m.ID)
			return true
		}}, []string{"refused initialize", "closed today"}},
		{"an odd session", &script{post: func(w http.ResponseWriter, _ *http.Request, m *protocol.Message) bool {
			w.Header().Set(headerSession, "a b")
			answerJSON(w, m.ID.Raw(), `{"protocolVersion":"2025-06-18"}`)
			return true
		}}, []string{"session id"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, test.handler)
			r := newRig(t, func(o *Options) { o.Host.Env = []string{"KEY=open-sesame"} },
				limited(func(l *limits) { l.recheck = time.Hour }))
			s := r.add(at(w.URL).With("headers", args{"Authorization": "Bearer ${KEY}"}))
			f := r.state("s", source.Failed).LastError
			contains(t, f.Error(), append(test.parts, `server "s"`)...)
			if strings.Contains(f.Error(), "open-sesame") || strings.Contains(f.Error(), "/secret") {
				t.Errorf("it tells a secret: %v", f)
			}
			_, err := s.Call(t.Context(), tool("x", nil))
			contains(t, failed(t, err, source.ServerFailed).Error(), test.parts...)
		})
	}
	elsewhere.each(func(r *http.Request) { t.Errorf("a redirect was followed: %s %s", r.Method, r.URL) })
}

// A redirect within the origin is followed, with the message and the headers.
func TestRedirectsWithinTheOrigin(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.RedirectHandler("/mcp/", http.StatusPermanentRedirect))
	mux.Handle("/mcp/", &script{
		call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `{"fine":true}`) },
		post: func(w http.ResponseWriter, r *http.Request, _ *protocol.Message) bool {
			if r.Header.Get("X-Key") != "open sesame" {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			return false
		},
	})
	w := serve(t, mux)
	s := newRig(t).only(at(w.URL+"/mcp").With("headers", args{"X-Key": "${TOKEN}"}))
	if got, err := s.Call(t.Context(), tool("x", nil)); err != nil || string(got) != `{"fine":true}` {
		t.Errorf("%s, %v", got, err)
	}
}

// A server that loses each session doesn't make a storm, and a call gives up the
// second time.
func TestSessionsThatAreAlwaysLost(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, _ Raw) { http.NotFound(w, nil) }})
	r := newRig(t)
	s := r.only(at(w.URL))
	_, err := s.Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.ServerCrashed).Error(), "doesn't know the session", "404")
	if n := w.seen(http.MethodPost); n > 8 { // two or three handshakes, two calls
		t.Errorf("%d requests", n)
	}
	eventually(t, "it is patient", func() bool { return slices.Contains(r.States("s"), source.Backoff) })
}

// A server that can't be reached is in backoff, then parked, and a call wakes it.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	fine := &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `{"fine":true}`) }}
	w := httptest.NewUnstartedServer(fine)
	address := "http://" + w.Listener.Addr().String()
	_ = w.Listener.Close()
	r := newRig(t)
	config := sourcetest.Load(t, r.dir, map[string]fields{"s": at(address)})
	config.Servers[0].MaxRestarts, config.Servers[0].RestartDelay = 1, time.Millisecond
	r.Apply(config)
	status := r.state("s", source.Parked)
	contains(t, status.LastError.Error(), address+" can't be reached", "refused", "look whether it runs")
	if status.NextTry.IsZero() || !status.Tried || status.Restarts != 1 {
		t.Errorf("%+v", status)
	}
	_, err := r.Server("s").Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.ServerParked).Error(), "can't be reached", "garra mcp restart s")
	again := httptest.NewUnstartedServer(fine)
	_ = again.Listener.Close()
	again.Listener = listen(t, strings.TrimPrefix(address, "http://"))
	again.Start()
	defer again.Close()
	if err := r.Server("s").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Server("s").Call(t.Context(), tool("x", nil)); err != nil || string(got) != `{"fine":true}` {
		t.Errorf("%s, %v", got, err)
	}
	again.Config.Close() // it dies while it is ready
	_, err = r.Server("s").Call(t.Context(), within(300*time.Millisecond, tool("x", nil)))
	if err == nil {
		t.Error("a call of a dead server succeeded")
	}
	r.state("s", source.Parked)
}

// One that never answers initialize is given up after its time.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	w := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { hang(r) }))
	r := newRig(t)
	s := r.add(at(w.URL).With("timeoutSecs", 0.2))
	f := r.state("s", source.Backoff).LastError
	contains(t, f.Error(), "did not answer initialize within 200ms", "timeoutSecs")
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A token that is refused in the middle makes the server failed, not a storm.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	w := serve(t, &script{
		call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `{"fine":true}`) },
		post: func(w http.ResponseWriter, _ *http.Request, _ *protocol.Message) bool {
			if revoked.Load() {
				w.WriteHeader(http.StatusUnauthorized)
			}
			return revoked.Load()
		},
	})
	r := newRig(t, limited(func(l *limits) { l.recheck = time.Hour }))
	s := r.only(at(w.URL))
	revoked.Store(true)
	_, err := s.Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.ServerFailed).Error(), "401", "in headers")
	r.state("s", source.Failed)
	n := w.seen(http.MethodPost)
	for range 10 {
		_, err := s.Call(t.Context(), tool("x", nil))
		failed(t, err, source.ServerFailed)
	}
	if more := w.seen(http.MethodPost) - n; more > 0 {
		t.Errorf("%d requests of a server that refuses them", more)
	}
	revoked.Store(false)
	if err := s.Start(t.Context()); err != nil {
		t.Error(err)
	}
}

// A slow server makes nobody else wait.
func TestSlowServerAlone(t *testing.T) {
	t.Parallel()
	slow := serve(t, &script{call: func(_ http.ResponseWriter, r *http.Request, _ Raw) { hang(r) }})
	fast := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `1`) }})
	r := newRig(t)
	r.apply(map[string]fields{"slow": at(slow.URL), "fast": at(fast.URL)})
	r.state("slow", source.Ready)
	r.state("fast", source.Ready)
	results := make(chan error)
	for range 100 {
		go func() { // ends with the call; the test waits for its error
			_, err := r.Server("slow").Call(t.Context(), within(time.Second, tool("x", nil)))
			results <- err
		}()
	}
	for range 100 {
		if _, err := r.Server("fast").Call(t.Context(), within(5*time.Second, tool("x", nil))); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		failed(t, <-results, source.CallTimeout)
	}
}

// The messages of a batch (revision 2025-03-26) are taken one by one.
func TestBatches(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
		note := `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}`
		w.Header().Set("Content-Type", typeJSON)
		fmt.Fprintf(w, `[%s,{"jsonrpc":"2.0","id":%s,"result":{"a":1}}]`, note, id)
	}})
	c := &client{Name: "c"}
	got, err := newRig(t).only(at(w.URL)).Call(t.Context(), of(c, tool("x", nil)))
	if err != nil || string(got) != `{"a":1}` || len(c.Heard()) != 1 {
		t.Errorf("%s, %v, %q", got, err, c.Heard())
	}
}

// A standing stream that is cut is opened again, as often as it takes, from its
// last event, and a server may ask on it.
func TestStandingStream(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	replies := make(chan string, 10)
	w := serve(t, &script{
		get: func(w http.ResponseWriter, r *http.Request) {
			n := opened.Add(1)
			if n > 1 && r.Header.Get(headerLastEvent) != fmt.Sprint("e", n-1) {
				t.Errorf("stream %d is resumed after %q", n, r.Header.Get(headerLastEvent))
			}
			if n > 4 {
				hang(r)
				return
			}
			stream(w, fmt.Sprintf("retry: 1\nid: e%d\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,", n, n)+
				"\"method\":\"roots/list\"}\n\n")
		},
		post: func(_ http.ResponseWriter, _ *http.Request, m *protocol.Message) bool {
			if m.IsResponse() {
				replies <- string(m.ID.Raw()) + string(m.Result)
			}
			return false
		},
	})
	r := newRig(t, func(o *Options) {
		o.Hooks.Request = func(_ Context, from source.Origin, method string, _ Raw) (Raw, error) {
			return json.Marshal(from.Server + " " + method)
		}
	})
	r.only(at(w.URL))
	got := []string{<-replies, <-replies, <-replies, <-replies}
	slices.Sort(got)
	for i, reply := range got {
		if want := fmt.Sprintf(`%d"s roots/list"`, i+1); reply != want {
			t.Errorf("%s, want %s", reply, want)
		}
	}
}

// A server without a standing stream may say so in many ways.
func TestNoStandingStream(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 204, 400, 401, 403, 404, 405, 406} {
		w := serve(t, &script{
			get:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) },
			call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, `{"fine":true}`) },
		})
		r := newRig(t)
		s := r.only(at(w.URL))
		eventually(t, "it is tried", func() bool { return w.seen(http.MethodGet) == 1 })
		if got, err := s.Call(t.Context(), tool("x", nil)); err != nil || string(got) != `{"fine":true}` {
			t.Errorf("%d: %s, %v", status, got, err)
		}
		if got := r.States("s"); len(got) != 2 || w.seen(http.MethodGet) != 1 {
			t.Errorf("%d: %v, %d GET", status, got, w.seen(http.MethodGet))
		}
	}
}

// What a server floods the gateway with is bounded.
func TestFloodOfRequests(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) {
		var text bytes.Buffer
		for i := range 500 {
			fmt.Fprintf(&text, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q%d\",\"method\":\"elicitation/create\"}\n\n", i)
		}
		fmt.Fprintf(&text, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n\n", id)
		stream(w, text.String())
	}})
	r := newRig(t)
	var asked, most atomic.Int32
	c := &client{Name: "c", Can: func(ctx Context, _ string, _ Raw) (Raw, error) {
		most.Store(max(most.Load(), asked.Add(1)))
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	if _, err := r.only(at(w.URL)).Call(t.Context(), of(c, tool("x", nil))); err != nil {
		t.Error(err)
	}
	if n := most.Load(); n > maxAsked {
		t.Errorf("%d questions at a time", n)
	}
	if r.Saw("wait for an answer already") == "" {
		t.Error("nobody was told")
	}
}
