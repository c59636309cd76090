// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
	"github.com/garraia/garra/supervisor"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	misbehave.Main()
	os.Exit(m.Run())
}

// patience bounds every wait of a test for something that will happen.
const patience = 30 * time.Second

var errRefused = errors.New("mcp.json:1:1: this is not JSON")

// A rig is a gateway with real servers, behind a socket.
type rig struct {
	t          *testing.T
	client     *Client
	server     *Server
	supervisor *supervisor.Supervisor
	events     *Events
	refuse     bool // reloads
}

// An entry is a server in mcp.json.
type entry map[string]any

// misbehaving is an entry of the server of internal/misbehave.
func misbehaving(flags ...string) entry {
	path, args := misbehave.Command(flags...)
	return entry{"command": path, "args": args}
}

func (e entry) with(field string, value any) entry {
	e[field] = value
	return e
}

// newRig starts a gateway with some servers.
func newRig(t *testing.T, servers map[string]entry) *rig {
	t.Helper()
	r := &rig{t: t, events: NewEvents()}
	dir := t.TempDir()
	g := gateway.New(gateway.Options{})
	var err error
	r.supervisor, err = supervisor.New(supervisor.Options{
		PrivateDir: t.TempDir(),
		Host:       envbuild.SystemHost(),
		Hooks: source.Hooks{
			Event: func(e source.Event) {
				r.events.Publish(Event{Time: e.Time, Kind: string(e.Kind), Server: e.Server, State: string(e.State)})
				if e.Kind == source.EventState {
					g.StateChanged(e.Origin)
				}
			},
			Notification: g.Notified, Request: g.Asked,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.server = NewServer(&API{
		Gateway: g, Events: r.events, Loaded: func() bool { return true },
		Reload: func(context.Context) error {
			if r.refuse {
				return errRefused
			}
			return nil
		},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r.server.Shutdown(ctx)
		g.Close()
		if left := r.supervisor.Close(ctx); len(left) > 0 {
			t.Errorf("did not stop: %q", left)
		}
	})
	config := load(t, dir, servers)
	r.supervisor.Apply(config)
	g.Apply(config, func(name string) source.Source { return r.supervisor.Server(name) })
	socket := filepath.Join(dir, "s")
	l, err := ListenSocket(socket)
	if err != nil {
		t.Fatal(err)
	}
	r.server.ServeSocket(l)
	if r.client, err = Dial(t.Context(), socket); err != nil {
		t.Fatal(err)
	}
	return r
}

// load writes mcp.json and reads it.
func load(t *testing.T, dir string, servers map[string]entry) *mcpconfig.Config {
	t.Helper()
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "mcp.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := mcpconfig.Load(dir)
	if err != nil || len(config.Servers) != len(servers) {
		t.Fatalf("%v %+v", err, config.Findings)
	}
	return config
}

// ask makes a request over the socket and decodes its answer.
func (r *rig) ask(method, path string) (status int, body map[string]any) {
	r.t.Helper()
	req := request(r.t, method, "http://localhost"+path)
	resp, err := r.client.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		r.t.Errorf("%s %s: Content-Type %q", method, path, got)
	}
	return resp.StatusCode, body
}

// state waits until a server is in a state.
func (r *rig) state(name string, want source.State) {
	r.t.Helper()
	r.eventually(name+" is "+string(want), func() bool {
		return r.supervisor.Server(name).Status().State == want
	})
}

// eventually waits for a condition.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("never happened: %s", what)
		}
	}
}

// failing checks the answer to a request that can't be served.
func (r *rig) failing(method, path string, wantStatus int, wantCode, wantState string) {
	r.t.Helper()
	status, body := r.ask(method, path)
	e, _ := body["error"].(map[string]any)
	message, _ := e["message"].(string)
	_, hasFix := e["fix"].(string)
	state, _ := body["state"].(string)
	if status != wantStatus || e["code"] != wantCode || message == "" || !hasFix || state != wantState {
		r.t.Errorf("%s %s: %d %v, want %d %s %s", method, path, status, body, wantStatus, wantCode, wantState)
	}
}

// ok checks that a request is served, and returns the answer.
func (r *rig) ok(method, path string) map[string]any {
	r.t.Helper()
	status, body := r.ask(method, path)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %v", method, path, status, body)
	}
	return body
}
