// SPDX-License-Identifier: Apache-2.0

// Package sourcetest is what tests of servers of any kind stand on: entries and
// configurations, calls and who makes them, a record of what was told, and the
// questions that are asked of all that. Only tests import it.
package sourcetest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// Patience bounds every wait of a test for something that will happen.
const Patience = 30 * time.Second

// Fields are an entry of mcp.json.
type Fields map[string]any

// With returns the fields with one of them changed.
func (f Fields) With(name string, value any) Fields {
	f = maps.Clone(f)
	f[name] = value
	return f
}

// Load writes mcp.json into a folder and reads it. It must be without errors.
func Load(t *testing.T, dir string, servers map[string]Fields) *mcpconfig.Config {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, mcpconfig.ServersFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := mcpconfig.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range config.Findings {
		if f.Severity == mcpconfig.Error {
			t.Fatalf("mcp.json: %+v", f)
		}
	}
	return config
}

// Eventually waits for a condition.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		<-tick.C
	}
}

// State waits until a server is in a state.
func State(t *testing.T, s source.Source, want source.State) source.Status {
	t.Helper()
	var now source.Status
	Eventually(t, "it is "+string(want), func() bool {
		now = s.Status()
		return now.State == want
	})
	return now
}

// Args are a tool's arguments.
type Args map[string]any

// Tool is a call of a tool with a minute to answer.
func Tool(name string, arguments Args) *source.Call {
	text, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		panic(err)
	}
	return &source.Call{Method: protocol.MethodToolsCall, Params: text, Timeout: time.Minute}
}

// Within returns the call with another timeout.
func Within(d time.Duration, c *source.Call) *source.Call {
	c.Timeout = d
	return c
}

// From returns the call as one of a client.
func From(client source.Client, c *source.Call) *source.Call {
	c.Client = client
	return c
}

// Use calls a tool and returns its text.
func Use(t *testing.T, s source.Source, name string, arguments Args) string {
	t.Helper()
	result, err := s.Call(t.Context(), Tool(name, arguments))
	if err != nil {
		t.Fatalf("calling %s: %v", name, err)
	}
	return Text(t, result)
}

// Text is the text in a tool's result.
func Text(t *testing.T, result protocol.Raw) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("no text in %.200s: %v", result, err)
	}
	return r.Content[0].Text
}

// Failed makes sure that an error is a failure of some kind, and returns it.
func Failed(t *testing.T, err error, code source.Code) *source.Failure {
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

// Contains makes sure that a text has all these parts.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}

// A Client is who calls come from. Can answers what it is asked; without that it
// can't be asked.
type Client struct {
	Name string
	Can  func(ctx context.Context, method string, params protocol.Raw) (protocol.Raw, error)

	mu    sync.Mutex // guards what follows
	notes []string   // "method params"
	asked []string   // methods
}

var _ source.Client = (*Client)(nil)

// Session implements source.Client.
func (c *Client) Session() string { return c.Name }

// Holder implements source.Client.
func (c *Client) Holder() string { return c.Name }

// Notify implements source.Client.
func (c *Client) Notify(method string, params protocol.Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, method+" "+string(params))
}

// Ask implements source.Client.
func (c *Client) Ask(ctx context.Context, method string, params protocol.Raw) (protocol.Raw, error) {
	c.mu.Lock()
	c.asked = append(c.asked, method)
	c.mu.Unlock()
	if c.Can == nil {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client can't be asked %s", method)
	}
	return c.Can(ctx, method, params)
}

// Heard returns the notifications that the client got.
func (c *Client) Heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notes)
}

// Questions returns what the client was asked.
func (c *Client) Questions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}
