// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// Short names for what every test says.
type (
	fields = sourcetest.Fields
	args   = sourcetest.Args
	client = sourcetest.Client
)

var (
	eventually = sourcetest.Eventually
	tool       = sourcetest.Tool
	within     = sourcetest.Within
	of         = sourcetest.From
	textOf     = sourcetest.Text
	failed     = sourcetest.Failed
	contains   = sourcetest.Contains
)

const patience = sourcetest.Patience

// at is an entry for a server at a url.
func at(url string) fields { return fields{"url": url, "restartDelaySecs": 0.1} }

// entryOf is an entry with the defaults.
func entryOf(name string) *mcpconfig.Server {
	entry := mcpconfig.NewServer(name, mcpconfig.Position{File: "mcp.json", Line: 1}, mcpconfig.Settings{})
	entry.Transport, entry.URL, entry.Timeout = mcpconfig.HTTP, "http://127.0.0.1:1", time.Minute
	return entry
}

// A rig is a manager of servers, and a record of what it told.
type rig struct {
	*Manager
	sourcetest.Record
	t      *testing.T
	dir    string
	config *mcpconfig.Config // that was applied last
}

// quick are limits for tests that wait for every step.
func quick() limits {
	l := standardLimits()
	l.recheck, l.retry, l.retryMin = 50*time.Millisecond, 20*time.Millisecond, time.Millisecond
	l.bye, l.check = 300*time.Millisecond, 2*time.Second
	return l
}

// newRig makes a manager without servers, which is closed when the test ends.
func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	limits := quick()
	options := Options{
		Host:   envbuild.Host{Env: []string{"TOKEN=open sesame", "BAD=a\nb"}},
		Hooks:  r.Hooks(),
		limits: &limits,
	}
	for _, c := range change {
		c(&options)
	}
	r.Manager = New(options)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if left := r.Close(ctx); len(left) > 0 {
			t.Errorf("did not stop: %v", left)
		}
	})
	return r
}

// limited changes the limits.
func limited(change func(*limits)) func(*Options) { return func(o *Options) { change(o.limits) } }

// apply makes these the servers.
func (r *rig) apply(servers map[string]fields) {
	r.t.Helper()
	r.config = sourcetest.Load(r.t, r.dir, servers)
	r.Apply(r.config)
}

// add makes this the only server, under the name s, and returns it.
func (r *rig) add(f fields) *Server {
	r.t.Helper()
	r.apply(map[string]fields{"s": f})
	return r.Server("s")
}

// only makes this the only server, and returns it once it is ready.
func (r *rig) only(f fields) *Server {
	r.t.Helper()
	s := r.add(f)
	r.state("s", source.Ready)
	return s
}

// state waits until a server is in a state.
func (r *rig) state(name string, want source.State) source.Status {
	r.t.Helper()
	return sourcetest.State(r.t, r.Server(name), want)
}

// use calls a tool and returns its text.
func use(t *testing.T, s *Server, name string, arguments args) string {
	t.Helper()
	return sourcetest.Use(t, s, name, arguments)
}

// A web is an HTTP server whose handler can be changed while it runs, and which
// knows its requests.
type web struct {
	*httptest.Server

	mu       sync.Mutex // guards what follows
	handler  http.Handler
	requests []*http.Request
}

// serve starts an HTTP server, which is closed when the test ends, after the
// rig of the test if that is made later.
func serve(t *testing.T, handler http.Handler) *web {
	t.Helper()
	w := &web{handler: handler}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Server.Close()
	})
	return w
}

func (w *web) serve(to http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests = append(w.requests, r)
	handler := w.handler
	w.mu.Unlock()
	handler.ServeHTTP(to, r)
}

// become changes what the server does.
func (w *web) become(handler http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = handler
}

// seen returns how many requests with that method came.
func (w *web) seen(method string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		if r.Method == method {
			n++
		}
	}
	return n
}

// each hands out all requests so far.
func (w *web) each(look func(*http.Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.requests {
		look(r)
	}
}

// listen listens at an address of this machine.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
