// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// patience bounds every wait of a test for something that will happen.
const patience = 30 * time.Second

// Fields are an entry of mcp.json.
type fields map[string]any

// at is an entry for a server at a url.
func at(url string) fields { return fields{"url": url, "restartDelaySecs": 0.1} }

// with returns the fields with one of them changed.
func (f fields) with(name string, value any) fields {
	f = maps.Clone(f)
	f[name] = value
	return f
}

// A rig is a manager of servers, and a record of what it told.
type rig struct {
	*Manager
	t   *testing.T
	dir string

	mu     sync.Mutex // guards what follows
	events []source.Event
	notes  []string // "server method params"
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
		Host:         envbuild.Host{Env: []string{"TOKEN=open sesame", "BAD=a\nb"}},
		Hooks:        source.Hooks{Event: r.told, Notification: r.notified},
		Capabilities: Raw(`{"sampling":{},"elicitation":{}}`),
		limits:       &limits,
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

func (r *rig) told(e source.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) notified(server, method string, params Raw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s", server, method, params))
}

// saw returns the first event with that text in its message, or "".
func (r *rig) saw(text string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if strings.Contains(e.Message, text) {
			return e.Message
		}
	}
	return ""
}

// heard returns the notifications that concern no client.
func (r *rig) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// states returns the states that a server went through.
func (r *rig) states(name string) []source.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []source.State
	for _, e := range r.events {
		if e.Server == name && e.Kind == source.EventState {
			states = append(states, e.State)
		}
	}
	return states
}

// load writes mcp.json and reads it.
func (r *rig) load(servers map[string]fields) *mcpconfig.Config {
	r.t.Helper()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", " ")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, mcpconfig.ServersFile), text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	config, err := mcpconfig.Load(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range config.Findings {
		if f.Severity == mcpconfig.Error {
			r.t.Fatalf("mcp.json: %+v", f)
		}
	}
	return config
}

// apply makes these the servers.
func (r *rig) apply(servers map[string]fields) {
	r.t.Helper()
	r.Apply(r.load(servers))
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
	var now source.Status
	deadline := time.Now().Add(patience)
	for s := r.Server(name); ; {
		snapshot := s.current.Load()
		if now = s.Status(); now.State == want {
			return now
		}
		select {
		case <-snapshot.changed:
		case <-time.After(time.Until(deadline)):
			r.t.Fatalf("%s is %s, never %s; last error: %v", name, now.State, want, now.LastError)
		}
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		<-tick.C
	}
}

// args are a tool's arguments.
type args map[string]any

// tool is a call of a tool with a minute to answer.
func tool(name string, arguments args) *source.Call {
	text, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		panic(err)
	}
	return &source.Call{Method: protocol.MethodToolsCall, Params: text, Timeout: time.Minute}
}

// within returns the call with another timeout.
func within(d time.Duration, c *source.Call) *source.Call {
	c.Timeout = d
	return c
}

// of returns the call as one of a client.
func of(client source.Client, c *source.Call) *source.Call {
	c.Client = client
	return c
}

// use calls a tool and returns its text.
func use(t *testing.T, s *Server, name string, arguments args) string {
	t.Helper()
	result, err := s.Call(t.Context(), tool(name, arguments))
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return textOf(t, result)
}

func textOf(t *testing.T, result Raw) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("no text in %.200s: %v", result, err)
	}
	return r.Content[0].Text
}

// failed makes sure that an error is a failure of some kind, and returns it.
func failed(t *testing.T, err error, code source.Code) *source.Failure {
	t.Helper()
	f, ok := errors.AsType[*source.Failure](err)
	if !ok {
		t.Fatalf("not a failure: %v", err)
	}
	if f.Code != code {
		t.Errorf("code %s, want %s: %v", f.Code, code, f)
	}
	return f
}

// contains makes sure that a text has all these parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}

// A client is who calls come from.
type client struct {
	name string
	ask  func(ctx context.Context, method string, params Raw) (Raw, error)

	mu    sync.Mutex
	notes []string // "method params"
	asked []string // methods
}

func (c *client) Session() string { return c.name }

func (c *client) Notify(method string, params Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, method+" "+string(params))
}

func (c *client) Ask(ctx context.Context, method string, params Raw) (Raw, error) {
	c.mu.Lock()
	c.asked = append(c.asked, method)
	c.mu.Unlock()
	if c.ask == nil {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client can't be asked %s", method)
	}
	return c.ask(ctx, method, params)
}

// heard returns the notifications that the client got.
func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
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
