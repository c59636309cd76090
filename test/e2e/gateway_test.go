// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

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

// A gateway is a running `garra serve`.
type gateway struct {
	*home
	pid     int
	address string // host:port
	socket  string
	runDir  string
	log     *transcript // its standard error, at level debug, as JSON

	process *os.Process
	exited  chan struct{} // closed at its end, when code is set
	code    int           // -1 when a signal killed it
}

// runFile is what run.json says.
type runFile struct {
	PID     int    `json:"pid"`
	Address string `json:"address"`
	Socket  string `json:"socket"`
}

// serve starts a gateway on a free port. It is stopped at the end of the test,
// which fails if anything of it is left then.
func (h *home) serve(flags ...string) *gateway {
	h.t.Helper()
	places := garraJSON[struct {
		RunDir string `json:"run_dir"`
	}](h, "config", "path")
	g := &gateway{home: h, runDir: places.RunDir, log: &transcript{}, exited: make(chan struct{})}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json"}
	cmd := exec.Command(absolute(h.t, *binary), append(args, flags...)...)
	cmd.Env, cmd.Dir, cmd.Stderr = h.environ(), h.path("work"), g.log
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	g.process, g.pid = cmd.Process, cmd.Process.Pid
	go func() { // ends with the process; gone and the cleanup wait for it
		_ = cmd.Wait() // the code says it
		g.code = cmd.ProcessState.ExitCode()
		close(g.exited)
	}()
	h.t.Cleanup(g.cleanUp)
	eventually(h.t, patience, "run.json of the new gateway", func() bool {
		run := g.readRunFile()
		g.address, g.socket = run.Address, run.Socket
		return run.PID == g.pid || g.gone()
	})
	if g.gone() {
		h.t.Fatalf("garra serve ended with code %d:\n%s", g.code, g.log)
	}
	return g
}

// readRunFile reads run.json; empty when there is none.
func (g *gateway) readRunFile() (run runFile) {
	text, err := os.ReadFile(filepath.Join(g.runDir, "run.json"))
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil {
		return runFile{}
	}
	return run
}

func (g *gateway) gone() bool {
	select {
	case <-g.exited:
		return true
	default:
		return false
	}
}

// signal sends a signal and waits for the end.
func (g *gateway) signal(sig os.Signal) {
	g.t.Helper()
	if err := g.process.Signal(sig); err != nil {
		g.t.Fatalf("signalling garra: %v", err)
	}
	select {
	case <-g.exited:
	case <-time.After(patience):
		g.t.Fatalf("garra did not end on %s:\n%s", sig, g.log)
	}
}

// stop ends the gateway as an operator does.
func (g *gateway) stop() {
	g.t.Helper()
	if g.signal(syscall.SIGTERM); g.code != 0 {
		g.t.Errorf("garra serve ended with code %d:\n%s", g.code, g.log)
	}
}

// cleanUp ends the gateway and looks for what it left.
func (g *gateway) cleanUp() {
	if !g.gone() {
		g.stop()
	}
	if g.t.Failed() {
		g.t.Logf("the log of garra, pid %d:\n%s", g.pid, g.log)
	}
	left := processesOf(g.dir)
	if len(left) == 0 {
		return
	}
	g.t.Errorf("left after the end of garra: %v", left)
	for _, p := range left {
		p.kill()
	}
}

// A serverInfo is what `mcp list` and the admin routes say of a server.
type serverInfo struct {
	Name      string
	State     string
	PID       int
	Tools     *int
	Restarts  int
	LastError string `json:"last_error"`
	Env       struct {
		Mode    string
		Was     string
		Names   []string
		Dropped []string
	}
}

// admin makes a request to the admin routes, over the socket, and decodes a
// good answer into value, which may be nil. It returns the status and the body.
func (g *gateway) admin(method, path string, value any) (status int, body string) {
	g.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(g.t.Context(), method, "http://localhost"+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	if value != nil && response.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, value); err != nil {
			g.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return response.StatusCode, string(bytes.TrimSpace(text))
}

// servers lists all servers.
func (g *gateway) servers() []serverInfo {
	g.t.Helper()
	var list struct{ Servers []serverInfo }
	if status, body := g.admin(http.MethodGet, "/admin/mcp", &list); status != http.StatusOK {
		g.t.Fatalf("listing servers: %d %s", status, body)
	}
	return list.Servers
}

// server returns what is known of one server; empty when there is none.
func (g *gateway) server(name string) serverInfo {
	g.t.Helper()
	list := g.servers()
	if i := slices.IndexFunc(list, func(s serverInfo) bool { return s.Name == name }); i >= 0 {
		return list[i]
	}
	return serverInfo{}
}

// ready waits until servers are ready and their tools are known.
func (g *gateway) ready(names ...string) {
	g.t.Helper()
	for _, name := range names {
		eventually(g.t, patience, name+" is ready", func() bool {
			s := g.server(name)
			if s.Name == "" {
				g.t.Fatalf("there is no server %s", name)
			}
			return s.State == "ready" && s.Tools != nil
		})
	}
}

// readyAnew waits until a server is ready in another process.
func (g *gateway) readyAnew(name string, pid int) {
	g.t.Helper()
	eventually(g.t, patience, name+" is ready again", func() bool {
		s := g.server(name)
		return s.State == "ready" && s.PID != pid && s.Tools != nil
	})
}

// token makes a token of a client.
func (g *gateway) token() string {
	g.t.Helper()
	return garraJSON[struct{ Token string }](g.home, "token", "create", "--client", "e2e").Token
}

// url is the endpoint of one server, or of all when server is empty.
func (g *gateway) url(server string) string {
	if server != "" {
		server = "/" + server
	}
	return "http://" + g.address + "/mcp" + server
}

// signalled sends a signal to a process that may be gone.
func signalled(t testing.TB, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatalf("sending %s to %d: %v", sig, pid, err)
	}
}
