// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// TestReload edits the configuration of a running gateway in every way. One
// server is never touched: a call runs there all the time.
func TestReload(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	steady := rig.Misbehaving()
	configured := func(others map[string]rig.Entry) string {
		servers := map[string]rig.Entry{"steady": steady}
		for name, e := range others {
			servers[name] = e
		}
		return rig.MCPJSON(t, servers)
	}
	h.Write("mcp.json", configured(nil))
	g := h.Serve()
	g.Ready("steady")
	pid := g.Server("steady").PID
	call := g.Connect("steady").Hang("")
	all := g.Connect("")
	untouched := func(after string) {
		t.Helper()
		select {
		case a := <-call:
			t.Fatalf("%s the call in flight ended: %+v", after, a)
		default:
		}
		if now := g.Server("steady").PID; now != pid {
			t.Fatalf("%s the untouched server went from process %d to %d", after, pid, now)
		}
	}
	edits := map[string]func(name, text string){"in place": h.Write, "by renaming": h.Replace}
	for how, edit := range edits {
		edit("mcp.json", configured(map[string]rig.Entry{"other": rig.Misbehaving()}))
		appears(t, g, "other")
		if text := all.Text("other__echo", `{"text":"new"}`); text != "new" {
			t.Errorf("a server that was added says %q", text)
		}
		first := g.Server("other").PID
		edit("mcp.json", configured(map[string]rig.Entry{"other": rig.Misbehaving("--tools", "3")}))
		g.ReadyAnew("other", first)
		checkBroken(t, g, func() { edit("mcp.json", `{"mcpServers": {`) })
		changed := g.Server("other").PID
		edit("mcp.json", configured(map[string]rig.Entry{
			"other": rig.Misbehaving("--tools", "3"), "mended": rig.Misbehaving(),
		}))
		appears(t, g, "mended")
		if now := g.Server("other").PID; now != changed {
			t.Errorf("mending the file restarted a server: process %d, now %d", changed, now)
		}
		edit("mcp.json", configured(nil))
		disappears(t, g, "other", "mended")
		untouched("after edits " + how)
	}
	h.Write("config.yml", yamlServer("fromyaml"))
	appears(t, g, "fromyaml")
	checkBroken(t, g, func() { h.Replace("config.yml", "mcp: [") })
	h.Replace("config.yml", "mcp: {}\n")
	disappears(t, g, "fromyaml")
	untouched("after edits of config.yml")
	checkHangup(t, g)
	untouched("after SIGHUP")

	rig.Signalled(t, pid, syscall.SIGKILL)
	checkCrashed(t, call) // so it was that process's all the time
}

// yamlServer is a config.yml with one server.
func yamlServer(name string) string {
	e := rig.Misbehaving()
	return "mcp:\n  " + name + ":\n    command: " + e["command"].(string) +
		"\n    args: [" + strings.Join(e["args"].([]string), ", ") + "]\n"
}

// appears waits for a server that was added.
func appears(t *testing.T, g *rig.Gateway, name string) {
	t.Helper()
	rig.Eventually(t, rig.Patience, name+" appears", func() bool { return g.Server(name).Name != "" })
	g.Ready(name)
}

// disappears waits until servers that were removed are gone, and their
// processes.
func disappears(t *testing.T, g *rig.Gateway, names ...string) {
	t.Helper()
	for _, name := range names {
		rig.Eventually(t, rig.Patience, name+" is gone", func() bool { return g.Server(name).Name == "" })
	}
	rig.Eventually(t, rig.Patience, "their processes are gone", func() bool {
		running := 0
		for _, s := range g.Servers() {
			if s.PID != 0 {
				running += 2 // with its guardian
			}
		}
		return len(rig.Descendants(g.PID)) == running
	})
}

// checkBroken breaks a file: nothing changes, and it is said where people look.
func checkBroken(t *testing.T, g *rig.Gateway, edit func()) {
	t.Helper()
	const refused = "configuration refused"
	before, said := g.Servers(), strings.Count(g.Log.String(), refused)
	edit()
	rig.Eventually(t, rig.Patience, "the log tells of the broken file", func() bool {
		return strings.Count(g.Log.String(), refused) > said
	})
	status, body := g.Admin(http.MethodPost, "/admin/reload", nil)
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, `"config.refused"`) {
		t.Errorf("POST /admin/reload answers %d %s", status, body)
	}
	after := g.Servers()
	if len(after) != len(before) {
		t.Errorf("%d servers, before %d", len(after), len(before))
		return
	}
	for i := range after {
		if after[i].PID != before[i].PID || after[i].State != before[i].State {
			t.Errorf("a broken file changed %+v to %+v", before[i], after[i])
		}
	}
}

// checkHangup sends SIGHUP and waits for a reload that no edit has caused.
func checkHangup(t *testing.T, g *rig.Gateway) {
	t.Helper()
	const applied = "configuration applied"
	said := strings.Count(g.Log.String(), applied)
	rig.Signalled(t, g.PID, syscall.SIGHUP)
	rig.Eventually(t, rig.Patience, "SIGHUP reloads", func() bool {
		return strings.Count(g.Log.String(), applied) > said
	})
	if status, body := g.Admin(http.MethodPost, "/admin/reload", nil); status != http.StatusOK {
		t.Errorf("POST /admin/reload answers %d %s", status, body)
	}
}
