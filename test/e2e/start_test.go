// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSecondGateway starts a gateway where one is running.
func TestSecondGateway(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	g := h.serve("--example")
	out := run(t, h.command("serve", "--listen", "127.0.0.1:0"))
	if out.code != 1 {
		t.Errorf("exit code %d", out.code)
	}
	for _, part := range []string{fmt.Sprint(g.pid), g.address} {
		if !strings.Contains(out.stderr, part) {
			t.Errorf("%s is not named: %s", part, out.stderr)
		}
	}
	if run := g.readRunFile(); run.PID != g.pid {
		t.Errorf("run.json is now %+v", run)
	}
	g.ready("example")
}

// TestPortInUse starts a gateway of another user on a taken address.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	g := newHome(t).serve()
	h := newHome(t)
	out := run(t, h.command("serve", "--listen", g.address))
	if out.code != 1 || !strings.Contains(out.stderr, g.address) {
		t.Errorf("exit code %d: %s", out.code, out.stderr)
	}
	if strings.Contains(out.stderr, "panic") || len(processesOf(h.dir)) > 0 {
		t.Errorf("left %v: %s", processesOf(h.dir), out.stderr)
	}
}

// TestNoConfiguration starts a gateway that has nothing to serve.
func TestNoConfiguration(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if err := os.RemoveAll(h.configDir()); err != nil {
		t.Fatal(err)
	}
	g := h.serve()
	c := g.connect("")
	if tools := c.tools(); len(tools) > 0 {
		t.Errorf("tools of no server: %q", tools)
	}
	eventually(t, promptly, "the log says what to do", func() bool {
		return g.log.line("no servers are configured", h.configDir()+"/mcp.json")
	})
	check := garraJSON[struct {
		OK       bool
		Servers  int
		Findings []struct{ Severity string }
	}](h, "config", "check")
	if !check.OK || check.Servers != 0 || len(check.Findings) != 1 || check.Findings[0].Severity != "info" {
		t.Errorf("config check: %+v", check)
	}
	if err := os.MkdirAll(h.configDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	h.configure(map[string]entry{"late": misbehaving()})
	appears(t, g, "late")
}

// TestListStartsNothing runs the commands that only look, with no gateway
// running and an entry that nobody has read yet.
func TestListStartsNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	trap := entry{"command": "sh", "args": []string{"-c", `touch "$HOME/work/trap"; exec cat`}}
	h.configure(map[string]entry{"trap": trap, "other": trap})
	list := garraJSON[struct{ Servers []serverInfo }](h, "mcp", "list").Servers
	if len(list) != 2 || list[0].State != "stopped" || list[0].Tools != nil || list[0].PID != 0 {
		t.Errorf("mcp list --json: %+v", list)
	}
	for _, args := range [][]string{{"mcp", "list"}, {"config", "check"}, {"config", "show"}, {"config", "path"}} {
		h.garra(args...)
	}
	sprung := func() bool {
		_, err := os.Stat(h.path("work", "trap"))
		return err == nil
	}
	if sprung() {
		t.Fatal("a command that only looks started a server")
	}
	if left := processesOf(h.dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if out := run(t, h.command("mcp", "restart", "trap")); out.code != 1 || sprung() {
		t.Errorf("restart without a gateway: %+v", out)
	}
	h.serve()
	eventually(t, patience, "the entry would have started something", sprung)
}
