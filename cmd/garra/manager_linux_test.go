// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A serviceManager hears what a gateway tells it.
type serviceManager struct {
	t       *testing.T
	conn    *net.UnixConn
	address string
}

func newServiceManager(t *testing.T, address string) *serviceManager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &serviceManager{t, conn, address}
}

// hears waits until it is told a line, and returns all that was told with it.
func (m *serviceManager) hears(line string) []string {
	m.t.Helper()
	var before []string
	for {
		m.conn.SetReadDeadline(time.Now().Add(processPatience))
		text := make([]byte, 4096)
		n, err := m.conn.Read(text)
		if err != nil {
			m.t.Fatalf("never told %s, but %q: %v", line, before, err)
		}
		lines := strings.Split(string(text[:n]), "\n")
		if slices.Contains(lines, line) {
			return lines
		}
		before = append(before, lines...)
	}
}

// pending are the lines that were told and not heard yet.
func (m *serviceManager) pending() (lines []string) {
	text := make([]byte, 4096)
	for {
		m.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, err := m.conn.Read(text)
		if err != nil {
			return lines
		}
		lines = append(lines, strings.Split(string(text[:n]), "\n")...)
	}
}

// hasPrefix wants a line that begins with a text.
func hasPrefix(t *testing.T, lines []string, text string) {
	t.Helper()
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, text) }) {
		t.Errorf("%q has no %s", lines, text)
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]map[string]any{"one": {"inheritEnv": true}})
	m := newServiceManager(t, fmt.Sprintf("@garra-%d-%s", os.Getpid(), t.Name()))
	cmd := h.command("serve", "--listen", "127.0.0.1:0", "--no-auth")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.address, "WATCHDOG_USEC=3000000")
	p := start(t, cmd)
	hasPrefix(t, m.hears("READY=1"), "STATUS=")
	h.serving(p)
	m.hears("STATUS=1 of 1 server ready")
	m.hears("WATCHDOG=1")
	m.hears("WATCHDOG=1")

	// Not even a server that inherits garra's environment gets what is garra's alone.
	shown := h.must("mcp", "call", "one", "env")
	if !strings.Contains(shown, "GARRAIA_STATE_DIR=") {
		t.Fatalf("the server doesn't inherit: %s", shown)
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_"} {
		if strings.Contains(shown, name) {
			t.Errorf("the server has %s", name)
		}
	}

	p.signal(syscall.SIGHUP)
	hasPrefix(t, m.hears("RELOADING=1"), "MONOTONIC_USEC=")
	m.hears("READY=1")
	p.signal(syscall.SIGTERM)
	hasPrefix(t, m.hears("STOPPING=1"), "EXTEND_TIMEOUT_USEC=")
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// The service manager learns of a successor from the process that it knows, and then
// hears that one.
func TestTheServiceManagerFollows(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	m := newServiceManager(t, filepath.Join(h.folder, "notify"))
	cmd := h.command("serve", "--listen", "127.0.0.1:0", "--no-auth")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.address)
	p := start(t, cmd)
	h.serving(p)
	m.hears("READY=1")
	first, _ := h.run()
	p.signal(syscall.SIGUSR2)
	within(t, "there is a successor", func() bool {
		run, ok := h.run()
		return ok && run.PID != first.PID
	})
	run, _ := h.run()
	m.hears(fmt.Sprintf("MAINPID=%d", run.PID))
	m.hears("READY=1")
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := syscall.Kill(run.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.hears("STOPPING=1")
}

// A gateway that does not answer is not said to be alive.
func TestTheWatchdogIsNotFedByAGatewayThatHangs(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	m := newServiceManager(t, filepath.Join(h.folder, "notify"))
	cmd := h.command("serve", "--listen", "127.0.0.1:0", "--no-auth")
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.address, "WATCHDOG_USEC=600000")
	p := start(t, cmd)
	h.serving(p)
	m.hears("WATCHDOG=1")
	run, _ := h.run()
	if err := os.Remove(run.Socket); err != nil { // nobody gets through to it any more
		t.Fatal(err)
	}
	const silent = "the gateway does not answer itself"
	within(t, "it says that it doesn't answer itself", func() bool { return p.count(silent) > 0 })
	m.pending() // from before
	within(t, "it does so again and again", func() bool { return p.count(silent) > 3 })
	if heard := m.pending(); slices.Contains(heard, "WATCHDOG=1") {
		t.Errorf("it says %q", heard)
	}
}

// sockets are those that a service manager opens: two addresses and a Unix socket.
func sockets(t *testing.T, path string) (files []*os.File, addresses []string) {
	t.Helper()
	for _, at := range [][2]string{{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"unix", path}} {
		l, err := net.Listen(at[0], at[1])
		if err != nil && at[1] == "[::1]:0" {
			l, err = net.Listen("tcp", "127.0.0.1:0") // no IPv6 here
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		file, err := l.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			t.Fatal(err)
		}
		files, addresses = append(files, file), append(addresses, l.Addr().String())
	}
	return files, addresses
}

func TestSocketsOfTheServiceManager(t *testing.T) {
	t.Parallel()
	h := newHome(t, map[string]map[string]any{"one": {"inheritEnv": true}})
	path := filepath.Join(h.folder, "clients")
	files, addresses := sockets(t, path)
	cmd := h.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `LISTEN_PID=$$ exec "$0" serve --no-auth`, h.garra}
	cmd.Env = append(cmd.Env, "LISTEN_FDS=3", "LISTEN_FDNAMES=v4:v6:local")
	cmd.ExtraFiles = files
	p := start(t, cmd)
	h.serving(p)
	for _, address := range addresses {
		client := http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				if address == path {
					return new(net.Dialer).DialContext(ctx, "unix", path)
				}
				return new(net.Dialer).DialContext(ctx, "tcp", address)
			},
		}}
		resp, err := client.Get("http://localhost/healthz")
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		resp.Body.Close()
	}
	run, _ := h.run()
	if !slices.Equal(run.Addresses, addresses) {
		t.Errorf("run.json has %q, want %q", run.Addresses, addresses)
	}
	if shown := h.must("mcp", "call", "one", "env"); strings.Contains(shown, "LISTEN_") {
		t.Errorf("the server has %s", shown)
	}
	server := serverPID(t, h)
	guardian, err := parentOf(server)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{server, guardian} {
		for _, open := range descriptors(t, pid) {
			if strings.HasPrefix(open, "socket:") && slices.Contains(inodes(t, files), open) {
				t.Errorf("process %d has %s of the service manager", pid, open)
			}
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket is the service manager's: %v", err)
	}
}

// What is meant for another process is left alone, and what is no listener is refused.
func TestSocketsThatAreNone(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	files, addresses := sockets(t, filepath.Join(h.folder, "clients"))
	cmd := h.command("serve", "--listen", "127.0.0.1:0", "--no-auth")
	cmd.Env = append(cmd.Env, "LISTEN_FDS=3", "LISTEN_PID=1")
	cmd.ExtraFiles = files
	p := start(t, cmd)
	h.serving(p)
	if run, _ := h.run(); slices.Contains(addresses, run.Address) {
		t.Errorf("it took %s, which is another process's", run.Address)
	}
	p.signal(syscall.SIGTERM)
	p.code()

	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd = h.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `LISTEN_PID=$$ exec "$0" serve`, h.garra}
	cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=odd")
	cmd.ExtraFiles = []*os.File{null}
	p = start(t, cmd)
	if code := p.code(); code != 1 || !p.said("garra: odd is no socket that takes connections") {
		t.Errorf("exit code %d", code)
	}
}
