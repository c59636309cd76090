// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/test/rig"
)

// canary is in every value that must not get out of garra.
const canary = "c4n4ry"

// keptBack is what no server gets, not even one that inherits everything.
const keptBack = "GARRAIA_VAULT_PASSPHRASE"

// canaries returns garra's environment in these tests: what a shell holds that
// no server has any business with. Each value holds the canary.
func canaries() []string {
	names := []string{
		"GITHUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SLACK_BOT_TOKEN", "DATABASE_URL",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS",
		"NPM_TOKEN", "npm_config__authToken", "npm_config_registry", "NODE_OPTIONS",
		"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_RESOURCE_ATTRIBUTES", "SSH_AUTH_SOCK", "KUBECONFIG",
		"PYTHONSTARTUP", "GIT_ASKPASS", "MCP_TOKEN", "GARRAIA_API_TOKEN", keptBack,
	}
	list := []string{
		"HTTPS_PROXY=http://user:" + canary + "@127.0.0.1:1", "https_proxy=http://user:" + canary + "@127.0.0.1:1",
	}
	for _, name := range names {
		list = append(list, name+"="+canary+"-"+name)
	}
	return list
}

// newAviary starts a gateway with the canaries in its environment: one server
// inherits them, one is given one of them, and two should not know of any.
func newAviary(t *testing.T) *rig.Gateway {
	t.Helper()
	h := rig.NewHome(t, canaries()...)
	h.Configure(map[string]rig.Entry{
		"plain": rig.Misbehaving(),
		"given": rig.Misbehaving().With("env", map[string]string{"TOKEN": "${GITHUB_TOKEN}"}),
		"heir":  rig.Misbehaving().With("inheritEnv", true),
		"complains": rig.Misbehaving("--traceback").With("env", map[string]string{"TOKEN": "${env:NPM_TOKEN}"}).
			With("maxRestarts", 0),
		"unset": rig.Misbehaving().With("args", []string{"${GITHUB_TOKEN}", "${E2E_UNSET}"}),
		"remote": {
			"maxRestarts": 0,
			"url":         "https://127.0.0.1:1/", "headers": map[string]string{"Authorization": "${OPENAI_API_KEY}"},
		},
	})
	g := h.Serve("--example")
	g.Ready("example", "plain", "given", "heir")
	rig.Eventually(t, rig.Patience, "the server that complains is given up", func() bool {
		return g.Server("complains").State == "parked"
	})
	return g
}

// TestEnvironment looks for the canaries everywhere.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	g := newAviary(t)
	checkChildren(t, g)
	if !g.Log.Line(`"level":"warn"`, `"server":"heir"`, "inherit_env") {
		t.Error("no warning names the server that inherits everything")
	}
	names := g.Connect("example").Text("environment", `{}`)
	for _, v := range canaries() {
		if name, _, _ := strings.Cut(v, "="); strings.Contains(names, `"`+name+`"`) {
			t.Errorf("the example server sees %s: %s", name, names)
		}
	}
	for where, text := range answers(t, g) {
		if strings.Contains(text, canary) {
			t.Errorf("the canary is in %s:\n%s", where, text)
		}
	}
	g.Stop()
	if strings.Contains(g.Log.String(), canary) {
		t.Error("the canary is in the log")
	}
	checkFiles(t, g.Path("config"), g.Path("state"), g.Path("run"))
}

// checkChildren reads the environment of every process below garra.
func checkChildren(t *testing.T, g *rig.Gateway) {
	t.Helper()
	want := map[int]int{
		g.Server("heir").PID:  len(canaries()) - 1, // without what is kept back
		g.Server("given").PID: 1,
	}
	children := rig.Descendants(g.PID)
	if len(children) < 8 {
		t.Errorf("four servers and their guardians should run, there are %v", children)
	}
	for _, p := range children {
		n := 0
		for _, v := range p.Environment() {
			if strings.Contains(v, canary) {
				n++
			}
			if strings.HasPrefix(v, keptBack+"=") {
				t.Errorf("%v has %s", p, keptBack)
			}
		}
		if n != want[p.PID] {
			t.Errorf("%v has %d canaries, not %d", p, n, want[p.PID])
		}
	}
}

// answers returns everything that commands and admin routes say.
func answers(t *testing.T, g *rig.Gateway) map[string]string {
	t.Helper()
	said := make(map[string]string)
	commands := [][]string{
		{"mcp", "list"}, {"mcp", "tools"}, {"config", "check"}, {"config", "show"}, {"token", "list"},
	}
	routes := []string{"/admin/mcp", "/healthz", "/readyz"}
	for _, s := range g.Servers() {
		commands = append(commands, []string{"mcp", "inspect", s.Name}, []string{"mcp", "logs", s.Name})
		routes = append(routes, "/admin/mcp/"+s.Name, "/admin/mcp/"+s.Name+"/logs")
	}
	for _, args := range commands {
		for _, args := range [][]string{args, append(slices.Clone(args), "--json")} {
			out := rig.Run(t, g.Command(append(args, "--log-level", "debug")...))
			if out.Stdout+out.Stderr == "" && args[1] != "logs" {
				t.Errorf("garra %v says nothing", args)
			}
			said["garra "+strings.Join(args, " ")] = out.Stdout + out.Stderr
		}
	}
	for _, route := range routes {
		_, said[route] = g.Admin(http.MethodGet, route, nil)
	}
	client := g.Connect("")
	said["tools/list"] = fmt.Sprintf("%s", client.Items("tools/list", "tools"))
	for _, server := range []string{"complains", "unset", "remote"} {
		m := client.Call(server+"__echo", `{}`)
		said["a call of "+server] = string(outcomeOf(m))
	}
	return said
}

// checkFiles reads all files in folders.
func checkFiles(t *testing.T, folders ...string) {
	t.Helper()
	read := 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), canary) {
				t.Errorf("the canary is in %s", path)
			}
			read++
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if read < 3 { // mcp.json, tokens, lock
		t.Errorf("only %d files found", read)
	}
}

// TestRestartIsolates takes the inherited environment from a server, which stays
// so over a restart of garra until a person edits the entry.
func TestRestartIsolates(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t, canaries()...)
	heir := rig.Misbehaving().With("inheritEnv", true)
	h.Configure(map[string]rig.Entry{"heir": heir})
	g := h.Serve()
	g.Ready("heir")
	if n := canariesIn(g, "heir"); n == 0 {
		t.Fatal("the server inherits nothing")
	}

	said := h.Garra("mcp", "restart", "heir")
	dropped := []string{"XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}
	for _, v := range canaries() {
		if name, _, _ := strings.Cut(v, "="); name != keptBack {
			dropped = append(dropped, name)
		}
	}
	slices.Sort(dropped)
	for _, name := range dropped {
		if !strings.Contains(said, name) {
			t.Errorf("the restart does not name %s: %s", name, said)
		}
	}
	checkIsolated(t, g, dropped)

	g.Stop()
	g = h.Serve()
	g.Ready("heir")
	checkIsolated(t, g, dropped)

	pid := g.Server("heir").PID
	h.Replace("mcp.json", rig.MCPJSON(t, map[string]rig.Entry{"heir": heir.With("timeoutSecs", 59)}))
	g.ReadyAnew("heir", pid)
	if s := g.Server("heir"); s.Env.Mode != "inherited" || canariesIn(g, "heir") == 0 {
		t.Errorf("after an edit of the entry: %+v", s)
	}
}

// canariesIn counts the canaries in a server's process.
func canariesIn(g *rig.Gateway, server string) (n int) {
	for _, v := range (rig.Process{PID: g.Server(server).PID}).Environment() {
		if strings.Contains(v, canary) {
			n++
		}
	}
	return n
}

func checkIsolated(t *testing.T, g *rig.Gateway, dropped []string) {
	t.Helper()
	s := g.Server("heir")
	if s.Env.Mode != "isolated" || s.Env.Was != "inherited" {
		t.Errorf("its environment is %q and was %q", s.Env.Mode, s.Env.Was)
	}
	if d := cmp.Diff(dropped, slices.Sorted(slices.Values(s.Env.Dropped))); d != "" {
		t.Errorf("dropped:\n%s", d)
	}
	if n := canariesIn(g, "heir"); n != 0 {
		t.Errorf("its process has %d canaries", n)
	}
}
