// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
	"github.com/garraia/garra/supervisor"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	misbehave.Main()
	sdkMain()
	os.Exit(m.Run())
}

// patience bounds every wait of a test for something that will happen.
const patience = time.Minute

// A rig is a gateway with real servers.
type rig struct {
	t          testing.TB
	gateway    *gateway.Gateway
	supervisor *supervisor.Supervisor
	dir        string

	mu       sync.Mutex
	warnings []string
}

// newRig starts a gateway without servers.
func newRig(t testing.TB) *rig { return newRigWith(t, gateway.Options{}) }

// newRigWith starts one with options, of which it sets who is warned.
func newRigWith(t testing.TB, options gateway.Options) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	options.Warn = func(server, message string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.warnings = append(r.warnings, server+": "+message)
	}
	r.gateway = gateway.New(options)
	var err error
	r.supervisor, err = supervisor.New(supervisor.Options{
		PrivateDir: t.TempDir(),
		Host:       envbuild.SystemHost(),
		Hooks: source.Hooks{
			Event: func(e source.Event) {
				if e.Kind == source.EventState {
					r.gateway.StateChanged(e.Origin)
				}
			},
			Notification: r.gateway.Notified,
			Request:      r.gateway.Asked,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r.gateway.Close()
		if left := r.supervisor.Close(ctx); len(left) > 0 {
			t.Errorf("did not stop: %v", left)
		}
	})
	return r
}

// entry is a server that is the misbehaving one with flags.
func entry(name string, flags ...string) *mcpconfig.Server {
	path, args := misbehave.Command(flags...)
	settings := mcpconfig.Settings{DefaultTimeout: patience}
	e := mcpconfig.NewServer(name, mcpconfig.Position{File: "mcp.json", Line: 1}, settings)
	e.Transport, e.Command, e.Args = mcpconfig.Stdio, path, args
	e.RestartDelay = 10 * time.Millisecond
	return e
}

// apply loads a configuration.
func (r *rig) apply(entries ...*mcpconfig.Server) {
	slices.SortFunc(entries, func(a, b *mcpconfig.Server) int { return strings.Compare(a.Name, b.Name) })
	config := &mcpconfig.Config{Dir: r.dir, Servers: entries, Settings: mcpconfig.Settings{ListWait: patience}}
	r.applyConfig(config)
}

func (r *rig) applyConfig(config *mcpconfig.Config) {
	r.supervisor.Apply(config)
	r.gateway.Apply(config, func(name string) source.Source {
		if s := r.supervisor.Server(name); s != nil {
			return s
		}
		return nil
	})
}

// warned reports whether a warning with that text was given.
func (r *rig) warned(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.warnings, func(w string) bool { return strings.Contains(w, text) })
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		<-tick.C
	}
}

// state waits until a server is in a state.
func (r *rig) state(name string, want source.State) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%s is %s", name, want), func() bool {
		return r.supervisor.Server(name).Status().State == want
	})
}

// A client is an MCP client over a pipe, which sees every message raw.
type client struct {
	t    testing.TB
	conn net.Conn
	next int

	mu      sync.Mutex
	answers map[string]*protocol.Message
	notes   []*protocol.Message
	asked   []*protocol.Message
	changed chan struct{}
}

// connect opens a session with a view and makes the handshake.
func (r *rig) connect(server string, capabilities string) *client {
	r.t.Helper()
	c := r.dial(server)
	m := c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+
		`,"clientInfo":{"name":"t","version":"1"}}`)
	if m.Error != nil {
		r.t.Fatalf("initialize: %s", m.Error)
	}
	c.notify("notifications/initialized", `{}`)
	return c
}

// dial opens a session without the handshake.
func (r *rig) dial(server string) *client {
	ours, theirs := net.Pipe()
	c := &client{t: r.t, conn: ours, answers: map[string]*protocol.Message{}, changed: make(chan struct{})}
	done := make(chan struct{})
	var gone atomic.Bool
	go func() {
		defer close(done)
		r.gateway.ServePipe(context.Background(), theirs, theirs, gateway.PipeClient{
			Server: server, Principal: "test", Gone: gone.Load,
		})
		theirs.Close()
	}()
	go c.read()
	r.t.Cleanup(func() {
		gone.Store(true)
		ours.Close()
		<-done
	})
	return c
}

func (c *client) read() {
	frames := protocol.NewReader(c.conn, 0)
	for {
		frame, err := frames.Next()
		if err != nil {
			return
		}
		m, err := protocol.Parse(frame)
		if err != nil {
			c.t.Errorf("the gateway wrote %q: %v", frame, err)
			return
		}
		c.mu.Lock()
		switch {
		case m.IsResponse():
			if c.answers[m.ID.String()] != nil {
				c.t.Errorf("answered twice: %s", m.ID)
			}
			c.answers[m.ID.String()] = m
		case m.IsNotification():
			c.notes = append(c.notes, m)
		default:
			c.asked = append(c.asked, m)
		}
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

func (c *client) write(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, line+"\n"); err != nil {
		c.t.Fatalf("writing: %v", err)
	}
}

func (c *client) notify(method, params string) {
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// send sends a request and returns its id.
func (c *client) send(method, params string) string {
	c.next++
	c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.next, method, params))
	return fmt.Sprint(c.next)
}

// await waits until what returns something.
func await[T any](c *client, what string, find func() (T, bool)) T {
	c.t.Helper()
	timeout := time.After(patience)
	for {
		c.mu.Lock()
		found, ok := find()
		changed := c.changed
		c.mu.Unlock()
		if ok {
			return found
		}
		select {
		case <-changed:
		case <-timeout:
			c.t.Fatalf("never came: %s", what)
		}
	}
}

// answer waits for the answer to a request.
func (c *client) answer(id string) *protocol.Message {
	c.t.Helper()
	return await(c, "the answer to "+id, func() (*protocol.Message, bool) {
		m := c.answers[id]
		return m, m != nil
	})
}

func (c *client) answered(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[id] != nil
}

func (c *client) request(method, params string) *protocol.Message {
	c.t.Helper()
	return c.answer(c.send(method, params))
}

// note waits for the nth notification of a method, from 1.
func (c *client) note(method string, n int) *protocol.Message {
	c.t.Helper()
	return await(c, fmt.Sprintf("%s number %d", method, n), func() (*protocol.Message, bool) {
		seen := 0
		for _, m := range c.notes {
			if m.Method == method {
				if seen++; seen == n {
					return m, true
				}
			}
		}
		return nil, false
	})
}

// question waits for a request of a server.
func (c *client) question(method string) *protocol.Message {
	c.t.Helper()
	return await(c, method, func() (*protocol.Message, bool) {
		for _, m := range c.asked {
			if m.Method == method {
				return m, true
			}
		}
		return nil, false
	})
}

// call calls a tool and returns the result; an error fails the test.
func (c *client) call(name, arguments string) protocol.Raw {
	c.t.Helper()
	m := c.request("tools/call", callParams(name, arguments))
	if m.Error != nil {
		c.t.Fatalf("calling %s: %s", name, m.Error)
	}
	return m.Result
}

func callParams(name, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments)
}

// text calls a tool and returns its text.
func (c *client) text(name, arguments string) string {
	c.t.Helper()
	return textOf(c.t, c.call(name, arguments))
}

func textOf(t testing.TB, result protocol.Raw) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("no text in %s: %v", result, err)
	}
	return r.Content[0].Text
}

// failure reads the kind of failure out of a result or error.
func failureCode(m *protocol.Message) string {
	var r struct {
		IsError bool
		Meta    map[string]struct{ Code string } `json:"_meta"`
		Data    map[string]struct{ Code string }
	}
	raw := m.Result
	if m.Error != nil {
		raw = m.Error
	}
	if json.Unmarshal(raw, &r) != nil {
		return ""
	}
	if m.Error != nil {
		return r.Data["garra/error"].Code
	}
	return r.Meta["garra/error"].Code
}

// names lists tools by name.
func (c *client) names() []string {
	c.t.Helper()
	m := c.request("tools/list", `{}`)
	var r struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(m.Result, &r); err != nil {
		c.t.Fatalf("tools/list: %s %s", m.Result, m.Error)
	}
	names := []string{}
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names
}
