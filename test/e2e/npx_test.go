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

	"github.com/garraia/garra/test/servers"
)

// npx is an entry that runs an installed package by npx, as users write it: npm
// finds it from the folder, and must not download anything.
func npx(t testing.TB, pack string, args ...string) entry {
	t.Helper()
	return entry{
		"command": "npx", "args": append([]string{"-y", pack}, args...),
		"cwd": absolute(t, serversFolder), "env": map[string]string{"npm_config_offline": "true"},
	}
}

// reference returns entries of the four reference servers.
func reference(t *testing.T, h *home) map[string]entry {
	t.Helper()
	const scope = "@modelcontextprotocol/server-"
	memory := npx(t, scope+"memory@2026.8.31")
	memory["env"].(map[string]string)["MEMORY_FILE_PATH"] = h.path("work", "memory.jsonl")
	entries := map[string]entry{
		"everything":          npx(t, scope+"everything@2026.8.31"),
		"filesystem":          npx(t, scope+"filesystem@2026.8.31", h.path("work")),
		"memory":              memory,
		"sequential-thinking": npx(t, scope+"sequential-thinking@2026.8.31"),
	}
	for name, e := range entries {
		entries[name] = e.with("restartDelaySecs", 0.1)
	}
	return entries
}

// TestNpx runs the reference servers as users do.
func TestNpx(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	entries := reference(t, h)
	h.configure(entries)
	g := h.serve()
	for name := range entries {
		g.ready(name)
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
	c := g.connect("")
	if text := c.text("everything__echo", `{"message":"back"}`); text != "Echo: back" {
		t.Errorf("echo says %q", text)
	}
}

// checkList looks for a server in what people see.
func checkList(t *testing.T, h *home, name string) {
	t.Helper()
	for line := range strings.Lines(h.garra("mcp", "list")) {
		if fields := strings.Fields(line); fields[0] == name && fields[1] == "ready" {
			return
		}
	}
	t.Errorf("mcp list has no %s that is ready", name)
}

// checkTree makes sure that the server is what npx makes of it: npm, a shell and
// the server itself.
func checkTree(t *testing.T, g *gateway, name string) {
	t.Helper()
	var names []string
	for _, p := range descendants(g.server(name).PID) {
		names = append(names, p.name)
	}
	if !slices.Equal(names, []string{"sh", "node"}) && !slices.Equal(names, []string{"sh", "MainThread"}) {
		t.Errorf("below npx of %s there is %q, not a shell and node", name, names)
	}
}

// checkInspect compares the tools of `mcp inspect` with what the server says
// directly.
func checkInspect(t *testing.T, h *home, s servers.Server, hello string) {
	t.Helper()
	direct := greetWith(t, startPipe(t, directly(t, h, s)), hello)
	inspect := func() (names []string) {
		detail := garraJSON[struct {
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
	eventually(t, patience, "inspect shows the tools of "+s.Name, func() bool {
		want, got = direct.tools(), inspect()
		return cmp.Equal(want, got)
	})
	if len(want) < s.Tools {
		t.Errorf("%s has %d tools: %q", s.Name, len(want), want)
	}
}

// checkClients lets clients that nobody here wrote list and call, over HTTP and
// through the bridge.
func checkClients(t *testing.T, g *gateway) {
	t.Helper()
	tools := []string{
		"everything__echo", "filesystem__read_text_file", "memory__read_graph",
		"sequential-thinking__sequentialthinking",
	}
	config := g.clientConfig(g.url(""), g.token())
	checkForeign(t, visited{g.home, config, "web"}, tools...)
	checkForeign(t, visited{g.home, config, "pipe"}, tools...)
	checkRemote(t, g, tools...)
}

// killLeaders kills npx alone: what it started must go with it.
func killLeaders(t *testing.T, g *gateway, names []string) {
	t.Helper()
	leaders, below := make(map[string]int), []process{}
	for _, name := range names {
		leaders[name] = g.server(name).PID
		below = append(below, descendants(leaders[name])...)
	}
	for _, pid := range leaders {
		signalled(t, pid, syscall.SIGKILL)
	}
	eventually(t, promptly, "what npx started is gone", func() bool { return len(survivors(below)) == 0 })
	for name, pid := range leaders {
		g.readyAnew(name, pid)
	}
}
