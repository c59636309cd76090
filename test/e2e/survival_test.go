// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/test/rig"
)

// answeredWithin bounds the wait of a caller whose server was killed. On an idle
// machine it is some milliseconds.
const answeredWithin = 5 * time.Second

// TestCrashDuringCall kills a server while a call runs.
func TestCrashDuringCall(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"victim": rig.Misbehaving(), "other": rig.Misbehaving()})
	g := h.Serve()
	g.Ready("victim", "other")
	pipe, _ := h.Stdio()
	for _, c := range []struct {
		name, prefix string
		client       *rig.Client
	}{
		{"one server over HTTP", "", g.Connect("victim")},
		{"all servers over HTTP", "victim__", g.Connect("")},
		{"over stdio", "victim__", pipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			pid, other := g.Server("victim").PID, g.Server("other").PID
			hanging := c.client.Hang(c.prefix)
			rig.Signalled(t, pid, syscall.SIGKILL)
			checkCrashed(t, hanging)
			g.ReadyAnew("victim", pid)
			if text := g.Connect("victim").Text("echo", `{"text":"back"}`); text != "back" {
				t.Errorf("the new process says %q", text)
			}
			if now := g.Server("other").PID; now != other {
				t.Errorf("another server went from process %d to %d", other, now)
			}
		})
	}
}

// checkCrashed waits for the answer to a call whose server was killed.
func checkCrashed(t *testing.T, call <-chan rig.Answered) {
	t.Helper()
	killed := time.Now()
	select {
	case a := <-call:
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		t.Logf("answered after %s", time.Since(killed).Round(time.Millisecond))
		if code := rig.FailureOf(a.Message); code != "server.crashed" {
			t.Errorf("the call ended with %q: %s", code, outcomeOf(a.Message))
		}
	case <-time.After(answeredWithin):
		t.Fatal("the call was not answered")
	}
}

// clinging are servers that don't go by themselves when garra is gone, each in
// another way.
func clinging(h *rig.Home) map[string]rig.Entry {
	self, args := misbehave.Command("--ignore-eof", "--ignore-term")
	shell := func(script string) rig.Entry {
		return rig.Entry{"command": "sh", "args": append([]string{"-c", script, self}, args...)}
	}
	return map[string]rig.Entry{
		"stays":    rig.Misbehaving("--ignore-eof", "--ignore-term"),
		"forks":    rig.Misbehaving("--fork-worker", h.Path("worker"), "--setsid-worker", h.Path("session")),
		"shell":    shell(`exec 3<&0; "$0" "$@" <&3 & wait`),
		"session":  {"command": "setsid", "args": append([]string{"--wait", self}, args...)},
		"detached": shell(`(setsid sleep 1000 >/dev/null 2>&1 &); exec "$0" "$@"`),
		"twice":    shell(`((sleep 1000 >/dev/null 2>&1 &) &); exec "$0" "$@"`),
		"npx":      rig.Npx(h.T, "@modelcontextprotocol/server-memory@2026.8.31"),
	}
}

// TestKilledGateway kills garra itself.
func TestKilledGateway(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Fatal(err)
	}
	h := rig.NewHome(t)
	entries := clinging(h)
	h.Configure(entries)
	g := h.Serve()
	for name := range entries {
		g.Ready(name)
	}
	below := rig.Descendants(g.PID)
	if least := 2*len(entries) + 8; len(below) < least {
		t.Errorf("%d processes run, not %d: %v", len(below), least, below)
	}

	g.Signal(syscall.SIGKILL)
	killed := time.Now()

	rig.Eventually(t, rig.Promptly, "nothing of the servers is left", func() bool {
		return len(rig.Survivors(below)) == 0 && len(rig.ProcessesOf(h.Dir)) == 0
	})
	t.Logf("gone after %s", time.Since(killed).Round(time.Millisecond))

	next := h.Serve()
	for name := range entries {
		next.Ready(name)
	}
	if next.ReadRunFile().PID != next.PID || next.Socket != g.Socket {
		t.Errorf("run.json of the new gateway: %+v", next.ReadRunFile())
	}
}
