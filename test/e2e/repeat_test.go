// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

const (
	repeats = 200
	warmUp  = 20 // of them, before anything is counted
)

// TestRepeats restarts a server and opens sessions many times: garra holds as
// much afterwards as before.
func TestRepeats(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"server": rig.Misbehaving("--fork-worker", h.Path("worker"))})
	fresh := h.Serve()
	fresh.Ready("server")
	few := rig.GoroutinesOf(fresh)

	g := h.Serve()
	g.Ready("server")
	token := g.Token()
	steps := []struct {
		name string
		once func()
	}{
		{"restarts", func() { restart(t, g, "server") }},
		{"sessions over HTTP", func() {
			visit(t, rig.Greet(t, rig.NewWeb(g.URL("server"), token)))
			visit(t, rig.Greet(t, rig.NewWeb(g.URL(""), token)))
		}},
		{"sessions over stdio", func() {
			bridge, _ := h.Stdio("--server", "server")
			visit(t, bridge)
		}},
	}
	for _, step := range steps {
		for range warmUp {
			step.once()
		}
	}
	before, running := rig.UsageOf(t, g.PID), len(rig.Descendants(g.PID))
	for _, step := range steps {
		for range repeats {
			step.once()
		}
		t.Logf("after %d %s: %+v; before: %+v", repeats, step.name, rig.UsageOf(t, g.PID), before)
	}
	rig.Eventually(t, rig.Patience, "everything of the sessions is closed", func() bool {
		now := rig.UsageOf(t, g.PID)
		return now.Descriptors <= before.Descriptors+rig.SlackDescriptors && len(rig.Descendants(g.PID)) == running
	})
	rig.CheckUsage(t, before, rig.UsageOf(t, g.PID))
	if z := rig.Zombies(rig.Descendants(g.PID)); len(z) > 0 {
		t.Errorf("zombies: %v", z)
	}
	if many := rig.GoroutinesOf(g); many > few+rig.SlackGoroutines {
		t.Errorf("%d goroutines, and %d in a gateway that did nothing", many, few)
	}
}

// restart restarts a server by the admin route.
func restart(t *testing.T, g *rig.Gateway, server string) {
	t.Helper()
	var result rig.ServerInfo
	status, body := g.Admin(http.MethodPost, "/admin/mcp/"+server+"/restart", &result)
	if status != http.StatusOK || result.State != "ready" || result.Tools == nil {
		t.Fatalf("restart: %d %s", status, body)
	}
}

// visit is a short session: a list, a call, and the end.
func visit(t *testing.T, c *rig.Client) {
	t.Helper()
	tool := "echo"
	for _, name := range c.Tools() {
		if strings.HasSuffix(name, "__echo") {
			tool = name
		}
	}
	if text := c.Text(tool, `{"text":"x"}`); text != "x" {
		t.Fatalf("echo says %q", text)
	}
	if err := c.HangUp(); err != nil {
		t.Fatal(err)
	}
}

// TestManyClients lets ten clients call at the same time.
func TestManyClients(t *testing.T) {
	t.Parallel()
	const clients, calls = 10, 20
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"a": rig.Misbehaving(), "b": rig.Misbehaving("--fork-worker", h.Path("worker"))})
	g := h.Serve()
	g.Ready("a", "b")
	before := rig.Descendants(g.PID)
	done := make(chan error, clients)
	for i := range clients {
		server, c := "a", (*rig.Client)(nil)
		switch i % 3 {
		case 0:
			server, c = "b", g.Connect("b")
		case 1:
			c = g.Connect("a")
		case 2:
			c, _ = h.Stdio("--server", "a")
		}
		go func() { done <- callOften(c, server, calls) }() // ends with the calls; awaited below
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	after := rig.Descendants(g.PID)
	if len(after) != len(before) || len(rig.Zombies(after)) > 0 {
		t.Errorf("processes: %v, before %v", after, before)
	}
}

// callOften calls echo, each time with another text.
func callOften(c *rig.Client, server string, times int) error {
	for i := range times {
		want := fmt.Sprintf("%s-%d", server, i)
		m, err := c.Ask(protocol.MethodToolsCall, rig.CallParams("echo", fmt.Sprintf(`{"text":%q}`, want)), nil)
		if err != nil {
			return err
		}
		if text, ok := rig.TextOf(m); !ok || text != want {
			return fmt.Errorf("echo of %q: %s", want, outcomeOf(m))
		}
	}
	return nil
}

// TestManyServers starts thirty servers of which some take their time: nobody
// waits for those.
func TestManyServers(t *testing.T) {
	t.Parallel()
	const servers, slow = 30, 6
	h := rig.NewHome(t)
	entries := make(map[string]rig.Entry)
	for i := range servers {
		name := string(rune('a'+i/10)) + string(rune('0'+i%10))
		entries[name] = rig.Misbehaving()
		if i%(servers/slow) == 0 {
			entries[name] = rig.Misbehaving("--never-init")
		}
	}
	h.Configure(entries)
	g := h.Serve()
	c := g.Connect("")
	if text := c.Text("b3__echo", `{"text":"soon"}`); text != "soon" {
		t.Errorf("echo says %q", text)
	}
	starting, ready := 0, 0
	rig.Eventually(t, rig.Patience, "all others are ready", func() bool {
		starting, ready = 0, 0
		for _, s := range g.Servers() {
			switch s.State {
			case "starting":
				starting++
			case "ready":
				ready++
			}
		}
		return ready == servers-slow
	})
	if starting != slow {
		t.Errorf("%d servers are starting, not %d", starting, slow)
	}
}
