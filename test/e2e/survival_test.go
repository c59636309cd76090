// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
)

// answeredWithin bounds the wait of a caller whose server was killed. On an idle
// machine it is some milliseconds.
const answeredWithin = 5 * time.Second

// TestCrashDuringCall kills a server while a call runs.
func TestCrashDuringCall(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.configure(map[string]entry{"victim": misbehaving(), "other": misbehaving()})
	g := h.serve()
	g.ready("victim", "other")
	pipe, _ := h.stdio()
	for _, c := range []struct {
		name, prefix string
		client       *client
	}{
		{"one server over HTTP", "", g.connect("victim")},
		{"all servers over HTTP", "victim__", g.connect("")},
		{"over stdio", "victim__", pipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid, other := g.server("victim").PID, g.server("other").PID
			hanging := c.client.hang(c.prefix)
			signalled(t, pid, syscall.SIGKILL)
			checkCrashed(t, hanging)
			g.readyAnew("victim", pid)
			if text := g.connect("victim").text("echo", `{"text":"back"}`); text != "back" {
				t.Errorf("the new process says %q", text)
			}
			if now := g.server("other").PID; now != other {
				t.Errorf("another server went from process %d to %d", other, now)
			}
		})
	}
}

// checkCrashed waits for the answer to a call whose server was killed.
func checkCrashed(t *testing.T, call <-chan answered) {
	t.Helper()
	killed := time.Now()
	select {
	case a := <-call:
		if a.err != nil {
			t.Fatal(a.err)
		}
		t.Logf("answered after %s", time.Since(killed).Round(time.Millisecond))
		if code := failureOf(a.message); code != "server.crashed" {
			t.Errorf("the call ended with %q: %s", code, outcomeOf(a.message))
		}
	case <-time.After(answeredWithin):
		t.Fatal("the call was not answered")
	}
}

// clinging are servers that don't go by themselves when garra is gone, each in
// another way.
func clinging(h *home) map[string]entry {
	self, args := misbehave.Command("--ignore-eof", "--ignore-term")
	shell := func(script string) entry {
		return entry{"command": "sh", "args": append([]string{"-c", script, self}, args...)}
	}
	return map[string]entry{
		"stays":    misbehaving("--ignore-eof", "--ignore-term"),
		"forks":    misbehaving("--fork-worker", h.path("worker"), "--setsid-worker", h.path("session")),
		"shell":    shell(`exec 3<&0; "$0" "$@" <&3 & wait`),
		"session":  {"command": "setsid", "args": append([]string{"--wait", self}, args...)},
		"detached": shell(`(setsid sleep 1000 >/dev/null 2>&1 &); exec "$0" "$@"`),
		"twice":    shell(`((sleep 1000 >/dev/null 2>&1 &) &); exec "$0" "$@"`),
		"npx":      npx(h.t, "@modelcontextprotocol/server-memory@2026.8.31"),
	}
}

// TestKilledGateway kills garra itself.
func TestKilledGateway(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	entries := clinging(h)
	h.configure(entries)
	g := h.serve()
	for name := range entries {
		g.ready(name)
	}
	below := descendants(g.pid)
	if least := 2*len(entries) + 8; len(below) < least {
		t.Errorf("%d processes run, not %d: %v", len(below), least, below)
	}

	g.signal(syscall.SIGKILL)
	killed := time.Now()

	eventually(t, promptly, "nothing of the servers is left", func() bool {
		return len(survivors(below)) == 0 && len(processesOf(h.dir)) == 0
	})
	t.Logf("gone after %s", time.Since(killed).Round(time.Millisecond))

	next := h.serve()
	for name := range entries {
		next.ready(name)
	}
	if next.readRunFile().PID != next.pid || next.socket != g.socket {
		t.Errorf("run.json of the new gateway: %+v", next.readRunFile())
	}
}
