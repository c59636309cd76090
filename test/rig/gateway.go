// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// A Gateway is a running `garra serve`.
type Gateway struct {
	*Home
	PID     int
	Address string // host:port
	Socket  string
	RunDir  string
	Log     *Transcript // its standard error, at level debug, as JSON

	Process *os.Process
	exited  chan struct{} // closed at its end, when code is set
	Code    int           // -1 when a signal killed it
}

// RunFile is what run.json says.
type RunFile struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
	Socket  string `json:"socket"`
}

// Serve starts a gateway on a free port. It is stopped at the end of the test,
// which fails if anything of it is left then.
func (h *Home) Serve(flags ...string) *Gateway {
	h.T.Helper()
	g := h.Begin(flags...)
	g.Listens()
	return g
}

// Begin is as Serve, and doesn't wait until the gateway listens.
func (h *Home) Begin(flags ...string) *Gateway {
	h.T.Helper()
	g := &Gateway{Home: h, RunDir: h.runDir(), Log: &Transcript{}, exited: make(chan struct{})}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json"}
	cmd := exec.Command(h.binary(), append(args, flags...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = h.Environ(), h.Path("work"), g.Log
	if err := cmd.Start(); err != nil {
		h.T.Fatal(err)
	}
	g.Process, g.PID = cmd.Process, cmd.Process.Pid
	go func() { // ends with the process; gone and the cleanup wait for it
		_ = cmd.Wait() // the code says it
		g.Code = cmd.ProcessState.ExitCode()
		close(g.exited)
	}()
	h.T.Cleanup(g.cleanUp)
	return g
}

// runDir is where garra tells of itself while it runs.
func (h *Home) runDir() string {
	h.T.Helper()
	if h.run == "" {
		h.run = GarraJSON[struct {
			RunDir string `json:"run_dir"`
		}](h, "config", "path").RunDir
	}
	return h.run
}

// Listens waits until the gateway says where it listens.
func (g *Gateway) Listens() {
	g.T.Helper()
	Eventually(g.T, Patience, "run.json of the new gateway", func() bool {
		run := g.ReadRunFile()
		g.Address, g.Socket = run.Address, run.Socket
		return run.PID == g.PID || g.Gone()
	})
	if g.Gone() {
		g.T.Fatalf("garra serve ended with code %d:\n%s", g.Code, g.Log)
	}
}

// ReadRunFile reads run.json; empty when there is none.
func (g *Gateway) ReadRunFile() (run RunFile) {
	text, err := os.ReadFile(filepath.Join(g.RunDir, "run.json"))
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		return RunFile{}
	}
	return run
}

// Gone reports whether the gateway has ended.
func (g *Gateway) Gone() bool {
	select {
	case <-g.exited:
		return true
	default:
		return false
	}
}

// Signal sends a signal and waits for the end.
func (g *Gateway) Signal(sig os.Signal) {
	g.T.Helper()
	if err := g.Process.Signal(sig); err != nil {
		g.T.Fatalf("signalling garra: %v", err)
	}
	select {
	case <-g.exited:
	case <-time.After(Patience):
		g.T.Fatalf("garra did not end on %s:\n%s", sig, g.Log)
	}
}

// Stop ends the gateway as an operator does.
func (g *Gateway) Stop() {
	g.T.Helper()
	if g.Signal(syscall.SIGTERM); g.Code != 0 {
		g.T.Errorf("garra serve ended with code %d:\n%s", g.Code, g.Log)
	}
}

// cleanUp ends the gateway and looks for what it left.
func (g *Gateway) cleanUp() {
	if !g.Gone() {
		g.Stop()
	}
	if g.T.Failed() {
		g.T.Logf("the log of garra, pid %d:\n%s", g.PID, g.Log)
	}
	left := ProcessesOf(g.Dir)
	if len(left) == 0 {
		return
	}
	g.T.Errorf("left after the end of garra: %v", left)
	for _, p := range left {
		p.Kill()
	}
}

// A ServerInfo is what `mcp list` and the admin routes say of a server.
type ServerInfo struct {
	Name       string
	State      string
	PID        int
	Tools      *int
	Restarts   int
	LastError  string   `json:"last_error"`
	LastReason string   `json:"last_reason"`
	Unenforced []string `json:"unenforced_limits"`
	Env        struct {
		Mode    string
		Was     string
		Names   []string
		Dropped []string
	}
}

// Admin makes a request to the admin routes, over the socket, and decodes a
// good answer into value, which may be nil. It returns the status and the body.
func (g *Gateway) Admin(method, path string, value any) (status int, body string) {
	g.T.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.Socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(g.T.Context(), method, "http://localhost"+path, nil)
	if err != nil {
		g.T.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		g.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.T.Fatalf("%s %s: %v", method, path, err)
	}
	if value != nil && response.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, value); err != nil {
			g.T.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return response.StatusCode, string(bytes.TrimSpace(text))
}

// Servers lists all servers.
func (g *Gateway) Servers() []ServerInfo {
	g.T.Helper()
	var list struct{ Servers []ServerInfo }
	if status, body := g.Admin(http.MethodGet, "/admin/mcp", &list); status != http.StatusOK {
		g.T.Fatalf("listing servers: %d %s", status, body)
	}
	return list.Servers
}

// Server returns what is known of one server; empty when there is none.
func (g *Gateway) Server(name string) ServerInfo {
	g.T.Helper()
	list := g.Servers()
	if i := slices.IndexFunc(list, func(s ServerInfo) bool { return s.Name == name }); i >= 0 {
		return list[i]
	}
	return ServerInfo{}
}

// Ready waits until servers are ready and their tools are known.
func (g *Gateway) Ready(names ...string) {
	g.T.Helper()
	for _, name := range names {
		Eventually(g.T, Patience, name+" is ready", func() bool {
			s := g.Server(name)
			if s.Name == "" {
				g.T.Fatalf("there is no server %s", name)
			}
			return s.State == "ready" && s.Tools != nil
		})
	}
}

// ReadyAnew waits until a server is ready in another process.
func (g *Gateway) ReadyAnew(name string, pid int) {
	g.T.Helper()
	Eventually(g.T, Patience, name+" is ready again", func() bool {
		s := g.Server(name)
		return s.State == "ready" && s.PID != pid && s.Tools != nil
	})
}

// Token makes a token of a client.
func (g *Gateway) Token() string {
	g.T.Helper()
	return GarraJSON[struct{ Token string }](g.Home, "token", "create", "--client", "e2e").Token
}

// URL is the endpoint of one server, or of all when server is empty.
func (g *Gateway) URL(server string) string {
	if server != "" {
		server = "/" + server
	}
	return "http://" + g.Address + "/mcp" + server
}

// Signalled sends a signal to a process that may be gone.
func Signalled(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("sending %s to %d: %v", sig, pid, err)
	}
}
