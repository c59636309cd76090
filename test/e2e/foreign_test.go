// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// A foreign is an MCP client that nobody here wrote, as a command line for what
// it does.
type foreign struct {
	name string
	list func(v visited) *exec.Cmd
	call func(v visited) *exec.Cmd
}

// A visited is how a foreign client reaches garra: a file in the form that every
// client reads, with a server "web" at an URL and a server "pipe" that is a
// command.
type visited struct {
	*rig.Home
	config string
	server string
}

// foreigners returns the clients that do one thing and end.
func foreigners() []foreign {
	inspector := func(v visited, args ...string) *exec.Cmd {
		options := []string{"--cli", "--config", v.config, "--server", v.server, "--format", "json", "--method"}
		cmd := installed(v.Home, "mcp-inspector", append(options, args...)...)
		cmd.Env = append(cmd.Env, "MCP_INSPECTOR_SECRET_STORE=memory")
		return cmd
	}
	return []foreign{
		{
			"inspector",
			func(v visited) *exec.Cmd { return inspector(v, "tools/list") },
			func(v visited) *exec.Cmd {
				return inspector(v, "tools/call", "--tool-name", "everything__echo", "--tool-arg", "message=hi")
			},
		},
		{
			"mcporter",
			func(v visited) *exec.Cmd {
				return installed(v.Home, "mcporter", "--config", v.config, "list", v.server, "--json")
			},
			func(v visited) *exec.Cmd {
				tool := v.server + ".everything__echo"
				return installed(v.Home, "mcporter", "--config", v.config, "call", tool, "message=hi")
			},
		},
	}
}

// installed is a command of what npm installed in the folder of clients.
func installed(h *rig.Home, name string, args ...string) *exec.Cmd {
	h.T.Helper()
	return h.Program(rig.Absolute(h.T, rig.ClientsFolder, "node_modules", ".bin", name), args...)
}

// clientConfig writes the file that tells clients of garra.
func clientConfig(h *rig.Home, url, token string) string {
	h.T.Helper()
	env := make(map[string]string)
	for _, v := range h.Environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	servers := map[string]any{
		"pipe": map[string]any{"command": rig.Binary(h.T), "args": []string{"stdio"}, "env": env},
		"web": map[string]any{
			"type": "streamable-http", "url": url, "headers": map[string]string{"Authorization": "Bearer " + token},
		},
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err == nil {
		err = os.WriteFile(h.Path("work", "client.json"), text, 0o600)
	}
	if err != nil {
		h.T.Fatal(err)
	}
	return h.Path("work", "client.json")
}

// checkForeign lets every client list tools and call one.
func checkForeign(t *testing.T, v visited, tools ...string) {
	t.Helper()
	for _, c := range foreigners() {
		listed := rig.Run(t, c.list(v))
		for _, tool := range tools {
			if listed.Code != 0 || !strings.Contains(listed.Stdout, `"`+tool+`"`) {
				t.Errorf("%s lists no %s: code %d\n%s%s", c.name, tool, listed.Code, listed.Stdout, listed.Stderr)
				break
			}
		}
		called := rig.Run(t, c.call(v))
		if called.Code != 0 || !strings.Contains(called.Stdout, "Echo: hi") {
			t.Errorf("%s does not call: code %d\n%s%s", c.name, called.Code, called.Stdout, called.Stderr)
		}
	}
}

// checkRemote talks through mcp-remote, which is a server over stdio and a client
// over HTTP.
func checkRemote(t *testing.T, g *rig.Gateway, tools ...string) {
	t.Helper()
	cmd := installed(g.Home, "mcp-remote", g.URL(""), "--allow-http", "--transport", "http-only",
		"--header", "Authorization: Bearer "+g.Token())
	cmd.Env = append(cmd.Env, "MCP_REMOTE_CONFIG_DIR="+g.Path("work", "mcp-remote"))
	p := rig.StartPipe(t, cmd)
	c := rig.Greet(t, p)
	listed := c.Tools()
	for _, tool := range tools {
		if !slices.Contains(listed, tool) {
			t.Errorf("mcp-remote lists no %s: %q", tool, listed)
		}
	}
	if text := c.Text("everything__echo", `{"message":"hi"}`); text != "Echo: hi" {
		t.Errorf("mcp-remote: echo says %q", text)
	}
	if err := c.HangUp(); err != nil {
		t.Logf("mcp-remote at the end of its input: %v\n%s", err, p.Stderr)
	}
}

// TestPrivateClients lets clients start a gateway of their own, since none runs.
func TestPrivateClients(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"everything": {
		"command": rig.Absolute(t, rig.ServersFolder, "node_modules", ".bin", "mcp-server-everything"),
	}})
	checkForeign(t, visited{h, clientConfig(h, "http://127.0.0.1:1/mcp", "none"), "pipe"}, "everything__echo")
	rig.Eventually(t, rig.Promptly, "the gateways have gone with their clients", func() bool {
		return len(rig.ProcessesOf(h.Dir)) == 0
	})
}
