// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/test/rig"
	"github.com/garraia/garra/test/servers"
)

// reference returns entries of the four reference servers.
func reference(t *testing.T, h *rig.Home) map[string]rig.Entry {
	t.Helper()
	const scope = "@modelcontextprotocol/server-"
	memory := rig.Npx(t, scope+"memory@2026.8.31")
	memory["env"].(map[string]string)["MEMORY_FILE_PATH"] = h.Path("work", "memory.jsonl")
	entries := map[string]rig.Entry{
		"everything":          rig.Npx(t, scope+"everything@2026.8.31"),
		"filesystem":          rig.Npx(t, scope+"filesystem@2026.8.31", h.Path("work")),
		"memory":              memory,
		"sequential-thinking": rig.Npx(t, scope+"sequential-thinking@2026.8.31"),
	}
	for name, e := range entries {
		entries[name] = e.With("restartDelaySecs", 0.1)
	}
	return entries
}

// TestNpx runs the reference servers as users do.
func TestNpx(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	entries := reference(t, h)
	h.Configure(entries)
	g := h.Serve()
	for name := range entries {
		g.Ready(name)
	}
	for name := range entries {
		checkList(t, h, name)
		checkTree(t, g, name)
	}
	hello := garrasHello(t)
	for _, s := range answering(t, h) {
		if entries[s.Name] != nil {
			checkInspect(t, h, s, hello)
		}
	}
	checkClients(t, g)
	killLeaders(t, g, slices.Collect(maps.Keys(entries)))
	c := g.Connect("")
	if text := c.Text("everything__echo", `{"message":"back"}`); text != "Echo: back" {
		t.Errorf("echo says %q", text)
	}
}

// checkList looks for a server in what people see.
func checkList(t *testing.T, h *rig.Home, name string) {
	t.Helper()
	for line := range strings.Lines(h.Garra("mcp", "list")) {
		if fields := strings.Fields(line); fields[0] == name && fields[1] == "ready" {
			return
		}
	}
	t.Errorf("mcp list has no %s that is ready", name)
}

// checkTree makes sure that the server is what npx makes of it: npm, a shell and
// the server itself.
func checkTree(t *testing.T, g *rig.Gateway, name string) {
	t.Helper()
	var names []string
	for _, p := range rig.Descendants(g.Server(name).PID) {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"sh", "node"}) && !slices.Equal(names, []string{"sh", "MainThread"}) {
		t.Errorf("below npx of %s there is %q, not a shell and node", name, names)
	}
}

// checkInspect compares the tools of `mcp inspect` with what the server says
// directly.
func checkInspect(t *testing.T, h *rig.Home, s servers.Server, hello string) {
	t.Helper()
	direct := rig.GreetWith(t, rig.StartPipe(t, directly(t, h, s)), hello)
	inspect := func() (names []string) {
		detail := rig.GarraJSON[struct {
			Tools []struct {
				Name      string
				ExposedAs string `json:"exposed_as"`
				Allowed   bool
			}
		}](h, "mcp", "inspect", s.Name)
		for _, tool := range detail.Tools {
			if !tool.Allowed || tool.ExposedAs != s.Name+"__"+tool.Name {
				t.Errorf("%s: %+v", s.Name, tool)
			}
			names = append(names, tool.Name)
		}
		return names
	}
	// The server adds tools some time after the handshake.
	var want, got []string
	rig.Eventually(t, rig.Patience, "inspect shows the tools of "+s.Name, func() bool {
		want, got = direct.Tools(), inspect()
		return cmp.Equal(want, got)
	})
	if len(want) < s.Tools {
		t.Errorf("%s has %d tools: %q", s.Name, len(want), want)
	}
}

// checkClients lets clients that nobody here wrote list and call, over HTTP and
// through the bridge.
func checkClients(t *testing.T, g *rig.Gateway) {
	t.Helper()
	tools := []string{
		"everything__echo", "filesystem__read_text_file", "memory__read_graph",
		"sequential-thinking__sequentialthinking",
	}
	config := clientConfig(g.Home, g.URL(""), g.Token())
	checkForeign(t, visited{g.Home, config, "web"}, tools...)
	checkForeign(t, visited{g.Home, config, "pipe"}, tools...)
	checkRemote(t, g, tools...)
}

// killLeaders kills npx alone: what it started must go with it.
func killLeaders(t *testing.T, g *rig.Gateway, names []string) {
	t.Helper()
	leaders, below := make(map[string]int), []rig.Process{}
	for _, name := range names {
		leaders[name] = g.Server(name).PID
		below = append(below, rig.Descendants(leaders[name])...)
	}
	for _, pid := range leaders {
		rig.Signalled(t, pid, syscall.SIGKILL)
	}
	rig.Eventually(t, rig.Promptly, "what npx started is gone", func() bool { return len(rig.Survivors(below)) == 0 })
	for name, pid := range leaders {
		g.ReadyAnew(name, pid)
	}
}
