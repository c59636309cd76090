// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/garraia/garra/protocol"
)

const (
	repeats = 200
	warmUp  = 20 // of them, before anything is counted
)

// What may be left over: pools that fill and the noise of the allocator, less
// than one in ten repeats could leak.
const (
	slackDescriptors = 10
	slackThreads     = 10
	slackGoroutines  = 15
	slackKB          = 16 << 10
)

// TestRepeats restarts a server and opens sessions many times: garra holds as
// much afterwards as before.
func TestRepeats(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.configure(map[string]entry{"server": misbehaving("--fork-worker", h.path("worker"))})
	fresh := h.serve()
	fresh.ready("server")
	few := goroutinesOf(fresh)

	g := h.serve()
	g.ready("server")
	token := g.token()
	steps := []struct {
		name string
		once func()
	}{
		{"restarts", func() { restart(t, g, "server") }},
		{"sessions over HTTP", func() {
			visit(t, greet(t, newWeb(g.url("server"), token)))
			visit(t, greet(t, newWeb(g.url(""), token)))
		}},
		{"sessions over stdio", func() {
			bridge, _ := h.stdio("--server", "server")
			visit(t, bridge)
		}},
	}
	for _, step := range steps {
		for range warmUp {
			step.once()
		}
	}
	before, running := usageOf(t, g.pid), len(descendants(g.pid))
	for _, step := range steps {
		for range repeats {
			step.once()
		}
		t.Logf("after %d %s: %+v; before: %+v", repeats, step.name, usageOf(t, g.pid), before)
	}
	eventually(t, patience, "everything of the sessions is closed", func() bool {
		now := usageOf(t, g.pid)
		return now.descriptors <= before.descriptors+slackDescriptors && len(descendants(g.pid)) == running
	})
	checkUsage(t, before, usageOf(t, g.pid))
	if z := zombies(descendants(g.pid)); len(z) > 0 {
		t.Errorf("zombies: %v", z)
	}
	if many := goroutinesOf(g); many > few+slackGoroutines {
		t.Errorf("%d goroutines, and %d in a gateway that did nothing", many, few)
	}
}

func checkUsage(t *testing.T, before, after usage) {
	t.Helper()
	if after.threads > before.threads+slackThreads {
		t.Errorf("%d threads, before %d", after.threads, before.threads)
	}
	if after.residentKB > before.residentKB+slackKB {
		t.Errorf("%d KB of memory, before %d", after.residentKB, before.residentKB)
	}
}

// restart restarts a server by the admin route.
func restart(t *testing.T, g *gateway, server string) {
	t.Helper()
	var result serverInfo
	status, body := g.admin(http.MethodPost, "/admin/mcp/"+server+"/restart", &result)
	if status != http.StatusOK || result.State != "ready" || result.Tools == nil {
		t.Fatalf("restart: %d %s", status, body)
	}
}

// visit is a short session: a list, a call, and the end.
func visit(t *testing.T, c *client) {
	t.Helper()
	tool := "echo"
	for _, name := range c.tools() {
		if strings.HasSuffix(name, "__echo") {
			tool = name
		}
	}
	if text := c.text(tool, `{"text":"x"}`); text != "x" {
		t.Fatalf("echo says %q", text)
	}
	if err := c.hangUp(); err != nil {
		t.Fatal(err)
	}
}

// goroutinesOf ends a gateway by SIGQUIT, on which the Go runtime writes the
// stack of every goroutine, and counts those.
func goroutinesOf(g *gateway) int {
	g.t.Helper()
	g.signal(syscall.SIGQUIT)
	n := strings.Count(g.log.String(), "\ngoroutine ")
	if n < 5 {
		g.t.Fatalf("%d goroutines in\n%s", n, g.log)
	}
	eventually(g.t, promptly, "nothing of the servers is left", func() bool { return len(processesOf(g.dir)) == 0 })
	return n
}

// TestManyClients lets ten clients call at the same time.
func TestManyClients(t *testing.T) {
	t.Parallel()
	const clients, calls = 10, 20
	h := newHome(t)
	h.configure(map[string]entry{"a": misbehaving(), "b": misbehaving("--fork-worker", h.path("worker"))})
	g := h.serve()
	g.ready("a", "b")
	before := descendants(g.pid)
	done := make(chan error, clients)
	for i := range clients {
		server, c := "a", (*client)(nil)
		switch i % 3 {
		case 0:
			server, c = "b", g.connect("b")
		case 1:
			c = g.connect("a")
		case 2:
			c, _ = h.stdio("--server", "a")
		}
		go func() { done <- callOften(c, server, calls) }() // ends with the calls; awaited below
	}
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	after := descendants(g.pid)
	if len(after) != len(before) || len(zombies(after)) > 0 {
		t.Errorf("processes: %v, before %v", after, before)
	}
}

// callOften calls echo, each time with another text.
func callOften(c *client, server string, times int) error {
	for i := range times {
		want := fmt.Sprintf("%s-%d", server, i)
		m, err := c.ask(protocol.MethodToolsCall, callParams("echo", fmt.Sprintf(`{"text":%q}`, want)), nil)
		if err != nil {
			return err
		}
		if text, ok := textOf(m); !ok || text != want {
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
	h := newHome(t)
	entries := make(map[string]entry)
	for i := range servers {
		name := string(rune('a'+i/10)) + string(rune('0'+i%10))
		entries[name] = misbehaving()
		if i%(servers/slow) == 0 {
			entries[name] = misbehaving("--never-init")
		}
	}
	h.configure(entries)
	g := h.serve()
	c := g.connect("")
	if text := c.text("b3__echo", `{"text":"soon"}`); text != "soon" {
		t.Errorf("echo says %q", text)
	}
	starting, ready := 0, 0
	eventually(t, patience, "all others are ready", func() bool {
		starting, ready = 0, 0
		for _, s := range g.servers() {
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
