// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// An entry that doesn't say which transport it has gets the older one when the
// server refuses today's, and people are told.
func TestFallback(t *testing.T) {
	t.Parallel()
	real := newSDK(t)
	older := real.older()
	for _, status := range []int{0, 400, 404, 405} { // 0 is what the SDK answers
		w := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status != 0 && r.Method == http.MethodPost && !r.URL.Query().Has("sessionid") {
				w.WriteHeader(status)
				return
			}
			older.ServeHTTP(w, r)
		}))
		r := newRig(t)
		s := r.only(at(w.URL + "/sse"))
		if got := use(t, s, "echo", args{"text": "x"}); got != "x" {
			t.Errorf("%d: %q", status, got)
		}
		contains(t, r.Saw("HTTP+SSE"), "type: sse")
	}
	for _, c := range []struct {
		name, kind string
		status     int
	}{{"the entry says http", "http", 405}, {"the server refuses us", "", 401}, {"it is broken", "", 500}} {
		w := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) }))
		r := newRig(t, limited(func(l *limits) { l.recheck = time.Hour }))
		entry := at(w.URL).With("restartDelaySecs", 100)
		if c.kind != "" {
			entry["type"] = c.kind
		}
		r.add(entry)
		eventually(t, c.name, func() bool { return r.Server("s").Status().Tried })
		if n := w.seen(http.MethodGet); n > 0 {
			t.Errorf("%s: %d GET", c.name, n)
		}
		contains(t, r.Server("s").Status().LastError.Error(), fmt.Sprint(c.status))
	}
}

// A player plays the stream of HTTP+SSE.
type player func(w http.ResponseWriter, r *http.Request, messages <-chan *protocol.Message)

// oldServer is a server of HTTP+SSE: stream plays the stream once the address for
// messages was told, and gets the messages.
func oldServer(endpoint string, play player) http.Handler {
	messages := make(chan *protocol.Message, 100)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			stream(w, "event: endpoint\ndata: "+endpoint+"\n\n")
			play(w, r, messages)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if m, err := protocol.Parse(body); err == nil {
			messages <- m
		}
		w.WriteHeader(http.StatusAccepted)
	})
}

// greets answers the handshake, and then everything else as it is told.
func greets(next func(w http.ResponseWriter, m *protocol.Message) bool) player {
	return func(w http.ResponseWriter, r *http.Request, messages <-chan *protocol.Message) {
		for {
			select {
			case <-r.Context().Done():
				return
			case m := <-messages:
				switch {
				case m.Method == protocol.MethodInitialize:
					stream(w, event1(m.ID, `{"protocolVersion":"2024-11-05"}`))
				case m.IsRequest() && !next(w, m):
					return
				}
			}
		}
	}
}

func event1(id protocol.ID, result string) string {
	return fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, result)
}

// When the stream ends, so does the session, and the calls in it; the next one
// works.
func TestBrokenStream(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	calls := 0
	w := serve(t, oldServer("messages?s=1", greets(func(w http.ResponseWriter, m *protocol.Message) bool {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if calls > 1 {
			stream(w, event1(m.ID, `{"fine":true}`))
		}
		return calls > 1
	})))
	r := newRig(t)
	s := r.only(at(w.URL+"/a/sse").With("type", "sse"))
	_, err := s.Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.ServerCrashed).Error(), "closed the stream")
	if got, err := s.Call(t.Context(), tool("x", nil)); err != nil || string(got) != `{"fine":true}` {
		t.Errorf("%s, %v", got, err)
	}
	w.each(func(r *http.Request) {
		if r.Method == http.MethodPost && r.RequestURI != "/a/messages?s=1" {
			t.Errorf("a message went to %s", r.RequestURI)
		}
	})
}

// Headers go to no other origin, whatever address the server names.
func TestForeignEndpoint(t *testing.T) {
	t.Parallel()
	other := serve(t, http.NotFoundHandler())
	for _, endpoint := range []string{
		other.URL + "/x", "//example.com/x", "https://127.0.0.1/x", "mailto:x", "http://%zz",
	} {
		w := serve(t, oldServer(endpoint, func(_ http.ResponseWriter, r *http.Request, _ <-chan *protocol.Message) {
			hang(r)
		}))
		r := newRig(t, limited(func(l *limits) { l.recheck = time.Hour }))
		r.add(at(w.URL).With("type", "sse"))
		contains(t, r.state("s", source.Failed).LastError.Error(), "another origin")
	}
	other.each(func(r *http.Request) { t.Errorf("%s %s came", r.Method, r.URL) })
}

// What is no event stream, or doesn't say where messages go, is given up in time.
func TestNoEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		state   source.State
		text    string
	}{
		{"silent", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, source.Backoff, "within 200ms"},
		{"only noise", func(w http.ResponseWriter, r *http.Request) {
			stream(w, "data: x\n\n: y\n")
			hang(r)
		}, source.Backoff, "within 200ms"},
		{
			"the end", func(w http.ResponseWriter, _ *http.Request) { stream(w, "data: x\n\n") },
			source.Backoff, "closed the stream",
		},
		{
			"HTML", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			source.Failed, "text/html",
		},
		{"nothing", http.NotFound, source.Failed, "404"},
	} {
		w := serve(t, c.handler)
		r := newRig(t, limited(func(l *limits) { l.recheck = time.Hour }))
		timeout := 30.0
		if strings.HasPrefix(c.text, "within") {
			timeout = 0.2
		}
		config := sourcetest.Load(t, r.dir, map[string]fields{
			"s": at(w.URL).With("type", "sse").With("timeoutSecs", timeout),
		})
		config.Servers[0].RestartDelay = time.Hour
		r.Apply(config)
		f := r.state("s", c.state).LastError
		if !strings.Contains(f.Error(), c.text) {
			t.Errorf("%s: %v", c.name, f)
		}
	}
}
