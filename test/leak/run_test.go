// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A visit is a running gateway whose servers have said all secrets, and its tokens.
type visit struct {
	*gateway
	tokens map[string]string
}

// newVisit starts garra and has clients talk to it.
func newVisit(t *testing.T, binary, format string) *visit {
	t.Helper()
	h := newHome(t, binary, format)
	h.configure(newRemote(t, h.record))
	h.fillVault()
	v := &visit{tokens: map[string]string{
		"client":   h.makeToken("client token", "--client", "leak"),
		"admin":    h.makeToken("admin token", "--role", "admin"),
		"operator": h.makeToken("operator token", "--role", "operator"),
		"viewer":   h.makeToken("viewer token", "--role", "viewer"),
	}}
	v.gateway = h.serve()
	v.settle()
	v.expect(map[string]string{
		"full": "ready", "other": "ready", "guarded": "ready", "slow": "ready", "placed": "ready",
		"web": "ready", "crashy": "parked", "unset": "failed", "missing": "failed", "thief": "failed",
		"shut": "failed", "lost": "failed", "away": "failed", "renamed": "failed", "fileless": "failed",
		"garbled": "failed",
	})
	v.follow(request{method: http.MethodGet, path: "/admin/events", token: v.tokens["admin"]})
	v.follow(request{method: http.MethodGet, path: "/admin/mcp/full/logs", token: v.tokens["viewer"]})
	v.talk()
	return v
}

// live uses garra in all ways, and returns what it recorded.
func live(t *testing.T, binary, format string) *home {
	t.Helper()
	v := newVisit(t, binary, format)
	v.rotate()
	v.commands()
	v.routes()
	v.processes()
	v.stop()
	v.alone()
	v.abort()
	v.files()
	return v.home
}

// talk has clients talk with servers that say secrets, crash and time out.
func (v *visit) talk() {
	v.t.Helper()
	all := v.connect("/mcp", v.tokens["client"])
	for _, method := range []string{"tools/list", "resources/list", "prompts/list", "resources/templates/list"} {
		all.request(method, `{}`)
	}
	all.echo(v.canaries, "full__")
	all.call("full__say_stderr", map[string]any{"text": "the end is near: " + v.canaries.value("own")})
	all.call("full__crash", map[string]any{"code": 3})
	all.call("slow__hang", nil)
	all.call("guarded__env", nil)
	for _, server := range []string{"lost", "unset", "away", "missing", "refused", "unreachable", "crashy", "nobody"} {
		all.call(server+"__echo", nil)
	}
	for _, c := range v.canaries {
		if c.held {
			all.call("web__echo", map[string]any{"text": c.value})
		}
	}
	all.call("web__fail", nil)
	all.request("leak/unknown", `{}`)
	v.settle()
	all.wait()

	bridge := v.stdio("garra stdio")
	bridge.echo(v.canaries, "other__")
	bridge.wait()
	for _, name := range []string{"full", "web"} {
		one := v.connect("/mcp/"+name, v.tokens["client"])
		one.call("echo", map[string]any{"text": v.canaries.value("own")})
		one.request("tools/list", `{}`)
		one.wait()
	}
}

// rotate gives a server another secret while it runs.
func (v *visit) rotate() {
	v.t.Helper()
	next := v.canaries.add("rotated")
	next.in = []string{"full"}
	v.canaries["own"].held, next.held = false, true
	v.run(next.value+"\n", "vault", "set", "mcp.full.TOKEN")
	var c *client
	eventually(v.t, "the server has the other secret", func() bool {
		c = v.connect("/mcp/full", v.tokens["client"])
		said := textOf(c.call("backwards_env", map[string]any{"name": "TOKEN"}))
		backwards := []byte(next.value)
		slices.Reverse(backwards)
		if said == string(backwards) {
			return true
		}
		c.wait()
		return false
	})
	c.echoOne("", next.value)
	c.wait()
}

// commands uses each command that a gateway answers.
func (g *gateway) commands() {
	g.t.Helper()
	for _, s := range g.servers() {
		g.run("", "mcp", "inspect", s.Name, "--json")
		g.run("", "mcp", "logs", s.Name)
	}
	for _, name := range []string{"full", "away", "crashy", "web"} {
		g.run("", "mcp", "inspect", name)
		g.run("", "mcp", "logs", name, "--json")
	}
	g.run(`{"text":"`+g.canaries.value("shared")+`"}`, "mcp", "call", "full", "echo", "--args", "-")
	g.run(`{}`, "mcp", "call", "full", "env", "--args", "-", "--json")
	g.run(`{}`, "mcp", "call", "guarded", "env", "--args", "-", "--json")
	for _, action := range []string{"restart", "stop", "start"} {
		for _, name := range []string{"full", "lost", "web", "nobody"} {
			g.run("", "mcp", action, name, "--json")
		}
		g.run("", "mcp", action, "full")
	}
	g.settle()
	g.everywhere()
	g.vaultCommands()
	g.settle()
}

// both runs a command with and without --json.
func (h *home) both(args ...string) {
	h.t.Helper()
	h.run("", args...)
	h.run("", append(slices.Clone(args), "--json")...)
}

// everywhere uses the commands that work with and without a gateway.
func (h *home) everywhere() {
	h.t.Helper()
	for _, args := range []string{
		"mcp list", "mcp tools", "config check", "config show", "config path", "token list", "mcp inspect nobody",
		"mcp call", "--no-such-flag",
	} {
		h.both(strings.Fields(args)...)
	}
}

// vaultCommands uses the commands of the vault, with its passphrase and another one.
func (h *home) vaultCommands() {
	h.t.Helper()
	h.run("", "config", "schema")
	h.run("", "version")
	h.run("", "completion", "bash")
	h.both("vault", "list")
	h.run("", "vault", "delete", "mcp.nobody.KEY")
	h.run("", "vault", "share", "SHARED", "--for", "full,other")
	for _, action := range []string{"list", "unlock"} {
		wrong := h.command("vault", action)
		wrong.Env = h.environ("GARRAIA_VAULT_PASSPHRASE=" + h.canaries.value("wrong passphrase"))
		h.runCommand(wrong, "")
	}
	h.run("", "vault", "unlock")
}

// routes asks each route, with each token, with a wrong one, and over the socket.
func (v *visit) routes() {
	v.t.Helper()
	var list []request
	for _, path := range []string{"/healthz", "/readyz", "/admin/mcp", "/admin/nothing", "/", "/mcp", "/mcp/full"} {
		list = append(list, request{method: http.MethodGet, path: path})
	}
	for _, s := range v.servers() {
		for _, path := range []string{"/admin/mcp/" + s.Name, "/admin/mcp/" + s.Name + "/logs"} {
			list = append(list, request{method: http.MethodGet, path: path})
		}
	}
	for _, path := range []string{"reload", "vault/refresh", "mcp/lost/restart", "mcp/away/start"} {
		list = append(list, request{method: http.MethodPost, path: "/admin/" + path})
	}
	body := `{"passphrase":"` + v.canaries.value("wrong passphrase") + `"}`
	for _, body := range []string{body, body[1:], body + "x"} {
		list = append(list, request{method: http.MethodPost, path: "/admin/vault/unlock", body: body})
	}
	tokens := []string{"", v.canaries.value("wrong token")}
	for _, token := range append(tokens, slices.Sorted(maps.Values(v.tokens))...) {
		for _, r := range list {
			if r.token = token; token == "" && strings.HasPrefix(r.path, "/mcp") {
				continue // it is answered by a stream without end
			}
			v.ask(r)
		}
	}
}

// alone uses garra when no gateway runs, with the configuration and then with one
// that can't be read.
func (h *home) alone() {
	h.t.Helper()
	h.everywhere()
	for _, name := range []string{"full", "web", "away", "crashy"} {
		h.run("", "mcp", "inspect", name, "--json")
	}
	h.run(`{}`, "mcp", "call", "full", "env", "--args", "-", "--json")
	h.run(`{"code":3}`, "mcp", "call", "full", "crash", "--args", "-")
	private := h.stdio("garra stdio, private")
	private.call("full__env", nil)
	private.echoOne("full__", h.canaries.value("rotated"))
	private.wait()
	h.spoil()
	h.both("config", "check")
	h.both("mcp", "list")
	h.run("", "serve", "--listen", "127.0.0.1:0")
	h.run("", "stdio")
}

// checkUse makes sure that the run was one.
func (h *home) checkUse() {
	h.t.Helper()
	total, places := h.size()
	h.t.Logf("%d canaries in %d bytes from %d places", len(h.canaries), total, places)
	for where, least := range map[string]int{
		"a client of /mcp": 500, "garra stdio": 500, theLog: 100, "GET /admin/mcp/full/logs": 100,
		"GET /admin/mcp/full/logs stream": 10, "garra stdio, private": 10,
	} {
		if n := strings.Count(h.at(where), "[redacted:"); n < least {
			h.t.Errorf("%s: only %d secrets were taken out", where, n)
		}
	}
	for _, where := range []string{
		"GET /admin/events stream", "process of garra", "process of full", "the server at the url",
	} {
		if h.at(where) == "" {
			h.t.Errorf("nothing was recorded: %s", where)
		}
	}
	if len(h.canaries) < 30 || total < 1<<20 {
		h.t.Error(fmt.Sprint("too little to tell: ", len(h.canaries), " canaries, ", total, " bytes"))
	}
}
