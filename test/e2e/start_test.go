// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// TestSecondGateway starts a gateway where one is running.
func TestSecondGateway(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	g := h.Serve("--example")
	out := rig.Run(t, h.Command("serve", "--listen", "127.0.0.1:0"))
	if out.Code != 1 {
		t.Errorf("exit code %d", out.Code)
	}
	for _, part := range []string{fmt.Sprint(g.PID), g.Address} {
		if !strings.Contains(out.Stderr, part) {
			t.Errorf("%s is not named: %s", part, out.Stderr)
		}
	}
	if run := g.ReadRunFile(); run.PID != g.PID {
		t.Errorf("run.json is now %+v", run)
	}
	g.Ready("example")
}

// TestPortInUse starts a gateway of another user on a taken address.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	g := rig.NewHome(t).Serve()
	h := rig.NewHome(t)
	out := rig.Run(t, h.Command("serve", "--listen", g.Address))
	if out.Code != 1 || !strings.Contains(out.Stderr, g.Address) {
		t.Errorf("exit code %d: %s", out.Code, out.Stderr)
	}
	if strings.Contains(out.Stderr, "panic") || len(rig.ProcessesOf(h.Dir)) > 0 {
		t.Errorf("left %v: %s", rig.ProcessesOf(h.Dir), out.Stderr)
	}
}

// TestNoConfiguration starts a gateway that has nothing to serve.
func TestNoConfiguration(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	if err := os.RemoveAll(h.ConfigDir()); err != nil {
		t.Fatal(err)
	}
	g := h.Serve()
	c := g.Connect("")
	if tools := c.Tools(); len(tools) > 0 {
		t.Errorf("tools of no server: %q", tools)
	}
	rig.Eventually(t, rig.Promptly, "the log says what to do", func() bool {
		return g.Log.Line("no servers are configured", h.ConfigDir()+"/mcp.json")
	})
	check := rig.GarraJSON[struct {
		OK       bool
		Servers  int
		Findings []struct{ Severity string }
	}](h, "config", "check")
	if !check.OK || check.Servers != 0 || len(check.Findings) != 1 || check.Findings[0].Severity != "info" {
		t.Errorf("config check: %+v", check)
	}
	if err := os.MkdirAll(h.ConfigDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	h.Configure(map[string]rig.Entry{"late": rig.Misbehaving()})
	appears(t, g, "late")
}

// TestListStartsNothing runs the commands that only look, with no gateway
// running and an entry that nobody has read yet.
func TestListStartsNothing(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	trap := rig.Entry{"command": "sh", "args": []string{"-c", `touch "$HOME/work/trap"; exec cat`}}
	h.Configure(map[string]rig.Entry{"trap": trap, "other": trap})
	list := rig.GarraJSON[struct{ Servers []rig.ServerInfo }](h, "mcp", "list").Servers
	if len(list) != 2 || list[0].State != "stopped" || list[0].Tools != nil || list[0].PID != 0 {
		t.Errorf("mcp list --json: %+v", list)
	}
	for _, args := range [][]string{{"mcp", "list"}, {"config", "check"}, {"config", "show"}, {"config", "path"}} {
		h.Garra(args...)
	}
	sprung := func() bool {
		_, err := os.Stat(h.Path("work", "trap"))
		return err == nil
	}
	if sprung() {
		t.Fatal("a command that only looks started a server")
	}
	if left := rig.ProcessesOf(h.Dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if out := rig.Run(t, h.Command("mcp", "restart", "trap")); out.Code != 1 || sprung() {
		t.Errorf("restart without a gateway: %+v", out)
	}
	h.Serve()
	rig.Eventually(t, rig.Patience, "the entry would have started something", sprung)
}
