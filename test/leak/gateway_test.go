// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// theLog is where the record has what `garra serve` writes.
const theLog = "the log of garra serve"

// A gateway is a running `garra serve`, whose log is recorded.
type gateway struct {
	*home
	cmd             *exec.Cmd
	exited          chan struct{} // closed at its end
	address, socket string
	streams         sync.WaitGroup // those that record streams of events
}

// serve starts a gateway on a free port.
func (h *home) serve() *gateway {
	h.t.Helper()
	return h.start(h.command("serve", "--listen", "127.0.0.1:0"))
}

// start starts a command that is, or becomes, a gateway.
func (h *home) start(cmd *exec.Cmd) *gateway {
	h.t.Helper()
	g := &gateway{home: h, cmd: cmd, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = h.writer("the output of garra serve"), h.writer(theLog)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { // ends with the process; ended waits for it
		_ = cmd.Wait() // the code says it
		close(g.exited)
	}()
	h.t.Cleanup(g.stop)
	eventually(h.t, "garra serve says where it listens", func() bool { return g.readRunFile() || g.ended() })
	if g.ended() {
		h.t.Fatalf("garra serve ended: %s", h.at(theLog))
	}
	return g
}

// readRunFile reads where the gateway listens, once it has written that.
func (g *gateway) readRunFile() bool {
	files, _ := filepath.Glob(g.path("state", "garraia", "run", "*", "run.json")) // the pattern is good
	if len(files) != 1 {
		return false
	}
	var run struct {
		PID             int
		Address, Socket string
	}
	text, err := os.ReadFile(files[0])
	if err != nil || json.Unmarshal(text, &run) != nil || run.PID != g.cmd.Process.Pid {
		return false
	}
	g.address, g.socket = run.Address, run.Socket
	return true
}

func (g *gateway) ended() bool {
	select {
	case <-g.exited:
		return true
	default:
		return false
	}
}

// stop ends the gateway as an operator does.
func (g *gateway) stop() {
	if !g.ended() {
		if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			g.t.Error(err)
		}
	}
	select {
	case <-g.exited:
	case <-time.After(patience):
		g.t.Fatalf("garra serve does not end: %s", g.at(theLog))
	}
	g.streams.Wait()
}

// A request is one to a route; what is answered is recorded.
type request struct {
	method, path, body string
	token              string // over the network; "" is over the socket
	stream             bool
}

func (r request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.method, r.path, map[bool]string{true: "stream"}[r.stream]))
}

// ask makes a request and returns the body of the answer.
func (g *gateway) ask(r request) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	response, err := g.send(ctx, r)
	if err != nil {
		g.t.Fatalf("%s: %v", r, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatalf("%s: %v", r, err)
	}
	g.add(r.String(), fmt.Sprintf("%s %v %s\n", response.Status, response.Header, body))
	return string(body)
}

// follow records a stream of events until the gateway ends.
func (g *gateway) follow(r request) {
	g.t.Helper()
	r.stream = true
	response, err := g.send(g.t.Context(), r)
	if err != nil {
		g.t.Fatalf("%s: %v", r, err)
	}
	g.streams.Add(1)
	go func() { // ends with the gateway; stop waits for it
		defer g.streams.Done()
		defer response.Body.Close()
		_, _ = io.Copy(g.writer(r.String()), response.Body) // its end is an error or not
	}()
}

func (g *gateway) send(ctx context.Context, r request) (*http.Response, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if r.token == "" {
			return new(net.Dialer).DialContext(ctx, "unix", g.socket)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", g.address)
	}
	ask, err := http.NewRequestWithContext(ctx, r.method, "http://"+g.address+r.path, bytes.NewBufferString(r.body))
	if err != nil {
		return nil, err
	}
	if r.stream {
		ask.Header.Set("Accept", "text/event-stream")
	}
	if r.token != "" {
		ask.Header.Set("Authorization", "Bearer "+r.token)
	}
	return (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(ask)
}

// A serverInfo is what is known of a server.
type serverInfo struct {
	Name, State string
	PID         int
	Tools       *int
}

// servers lists all servers.
func (g *gateway) servers() []serverInfo {
	g.t.Helper()
	var list struct{ Servers []serverInfo }
	body := g.ask(request{method: http.MethodGet, path: "/admin/mcp"})
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		g.t.Fatalf("%v in %s", err, body)
	}
	return list.Servers
}

// server returns what is known of one server.
func (g *gateway) server(name string) serverInfo {
	g.t.Helper()
	for _, s := range g.servers() {
		if s.Name == name {
			return s
		}
	}
	g.t.Fatalf("there is no server %s", name)
	return serverInfo{}
}

// settle waits until each server is in a state that lasts.
func (g *gateway) settle() {
	g.t.Helper()
	eventually(g.t, "no server is starting", func() bool {
		return !slices.ContainsFunc(g.servers(), func(s serverInfo) bool {
			passing := s.State == "starting" || s.State == "backoff" || s.State == "stopping"
			return passing || s.State == "ready" && s.Tools == nil
		})
	})
}

// expect makes sure that servers are in the states that the run needs.
func (g *gateway) expect(states map[string]string) {
	g.t.Helper()
	for _, s := range g.servers() {
		if want := states[s.Name]; want != "" && s.State != want {
			g.t.Fatalf("%s is %s, not %s: %s", s.Name, s.State, want,
				g.ask(request{method: http.MethodGet, path: "/admin/mcp/" + s.Name}))
		}
		delete(states, s.Name)
	}
	if len(states) > 0 {
		g.t.Fatalf("there are no servers %v", states)
	}
}
