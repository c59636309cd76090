// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestReload edits the configuration of a running gateway in every way. One
// server is never touched: a call runs there all the time.
func TestReload(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	steady := misbehaving()
	configured := func(others map[string]entry) string {
		servers := map[string]entry{"steady": steady}
		for name, e := range others {
			servers[name] = e
		}
		return mcpJSON(t, servers)
	}
	h.write("mcp.json", configured(nil))
	g := h.serve()
	g.ready("steady")
	pid := g.server("steady").PID
	call := g.connect("steady").hang("")
	all := g.connect("")
	untouched := func(after string) {
		t.Helper()
		select {
		case a := <-call:
			t.Fatalf("%s the call in flight ended: %+v", after, a)
		default:
		}
		if now := g.server("steady").PID; now != pid {
			t.Fatalf("%s the untouched server went from process %d to %d", after, pid, now)
		}
	}
	edits := map[string]func(name, text string){"in place": h.write, "by renaming": h.replace}
	for how, edit := range edits {
		edit("mcp.json", configured(map[string]entry{"other": misbehaving()}))
		appears(t, g, "other")
		if text := all.text("other__echo", `{"text":"new"}`); text != "new" {
			t.Errorf("a server that was added says %q", text)
		}
		first := g.server("other").PID
		edit("mcp.json", configured(map[string]entry{"other": misbehaving("--tools", "3")}))
		g.readyAnew("other", first)
		checkBroken(t, g, func() { edit("mcp.json", `{"mcpServers": {`) })
		changed := g.server("other").PID
		edit("mcp.json", configured(map[string]entry{"other": misbehaving("--tools", "3"), "mended": misbehaving()}))
		appears(t, g, "mended")
		if now := g.server("other").PID; now != changed {
			t.Errorf("mending the file restarted a server: process %d, now %d", changed, now)
		}
		edit("mcp.json", configured(nil))
		disappears(t, g, "other", "mended")
		untouched("after edits " + how)
	}
	h.write("config.yml", yamlServer("fromyaml"))
	appears(t, g, "fromyaml")
	checkBroken(t, g, func() { h.replace("config.yml", "mcp: [") })
	h.replace("config.yml", "mcp: {}\n")
	disappears(t, g, "fromyaml")
	untouched("after edits of config.yml")
	checkHangup(t, g)
	untouched("after SIGHUP")

	signalled(t, pid, syscall.SIGKILL)
	checkCrashed(t, call) // so it was that process's all the time
}

// yamlServer is a config.yml with one server.
func yamlServer(name string) string {
	e := misbehaving()
	return "mcp:\n  " + name + ":\n    command: " + e["command"].(string) +
		"\n    args: [" + strings.Join(e["args"].([]string), ", ") + "]\n"
}

// appears waits for a server that was added.
func appears(t *testing.T, g *gateway, name string) {
	t.Helper()
	eventually(t, patience, name+" appears", func() bool { return g.server(name).Name != "" })
	g.ready(name)
}

// disappears waits until servers that were removed are gone, and their
// processes.
func disappears(t *testing.T, g *gateway, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, patience, name+" is gone", func() bool { return g.server(name).Name == "" })
	}
	eventually(t, patience, "their processes are gone", func() bool {
		running := 0
		for _, s := range g.servers() {
			if s.PID != 0 {
				running += 2 // with its guardian
			}
		}
		return len(descendants(g.pid)) == running
	})
}

// checkBroken breaks a file: nothing changes, and it is said where people look.
func checkBroken(t *testing.T, g *gateway, edit func()) {
	t.Helper()
	const refused = "configuration refused"
	before, said := g.servers(), strings.Count(g.log.String(), refused)
	edit()
	eventually(t, patience, "the log tells of the broken file", func() bool {
		return strings.Count(g.log.String(), refused) > said
	})
	status, body := g.admin(http.MethodPost, "/admin/reload", nil)
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, `"config.refused"`) {
		t.Errorf("POST /admin/reload answers %d %s", status, body)
	}
	after := g.servers()
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
func checkHangup(t *testing.T, g *gateway) {
	t.Helper()
	const applied = "configuration applied"
	said := strings.Count(g.log.String(), applied)
	signalled(t, g.pid, syscall.SIGHUP)
	eventually(t, patience, "SIGHUP reloads", func() bool { return strings.Count(g.log.String(), applied) > said })
	if status, body := g.admin(http.MethodPost, "/admin/reload", nil); status != http.StatusOK {
		t.Errorf("POST /admin/reload answers %d %s", status, body)
	}
}
