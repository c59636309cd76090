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
	*home
	config string
	server string
}

// foreigners returns the clients that do one thing and end.
func foreigners() []foreign {
	inspector := func(v visited, args ...string) *exec.Cmd {
		options := []string{"--cli", "--config", v.config, "--server", v.server, "--format", "json", "--method"}
		cmd := v.client("mcp-inspector", append(options, args...)...)
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
				return v.client("mcporter", "--config", v.config, "list", v.server, "--json")
			},
			func(v visited) *exec.Cmd {
				return v.client("mcporter", "--config", v.config, "call", v.server+".everything__echo", "message=hi")
			},
		},
	}
}

// client is a command of what npm installed in the folder of clients.
func (h *home) client(name string, args ...string) *exec.Cmd {
	h.t.Helper()
	return h.program(absolute(h.t, clientsFolder, "node_modules", ".bin", name), args...)
}

// clientConfig writes the file that tells clients of garra.
func (h *home) clientConfig(url, token string) string {
	h.t.Helper()
	env := make(map[string]string)
	for _, v := range h.environ() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	servers := map[string]any{
		"pipe": map[string]any{"command": absolute(h.t, *binary), "args": []string{"stdio"}, "env": env},
		"web": map[string]any{
			"type": "streamable-http", "url": url, "headers": map[string]string{"Authorization": "Bearer " + token},
		},
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err == nil {
		err = os.WriteFile(h.path("work", "client.json"), text, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return h.path("work", "client.json")
}

// checkForeign lets every client list tools and call one.
func checkForeign(t *testing.T, v visited, tools ...string) {
	t.Helper()
	for _, c := range foreigners() {
		listed := run(t, c.list(v))
		for _, tool := range tools {
			if listed.code != 0 || !strings.Contains(listed.stdout, `"`+tool+`"`) {
				t.Errorf("%s lists no %s: code %d\n%s%s", c.name, tool, listed.code, listed.stdout, listed.stderr)
				break
			}
		}
		called := run(t, c.call(v))
		if called.code != 0 || !strings.Contains(called.stdout, "Echo: hi") {
			t.Errorf("%s does not call: code %d\n%s%s", c.name, called.code, called.stdout, called.stderr)
		}
	}
}

// checkRemote talks through mcp-remote, which is a server over stdio and a client
// over HTTP.
func checkRemote(t *testing.T, g *gateway, tools ...string) {
	t.Helper()
	cmd := g.client("mcp-remote", g.url(""), "--allow-http", "--transport", "http-only",
		"--header", "Authorization: Bearer "+g.token())
	cmd.Env = append(cmd.Env, "MCP_REMOTE_CONFIG_DIR="+g.path("work", "mcp-remote"))
	p := startPipe(t, cmd)
	c := greet(t, p)
	listed := c.tools()
	for _, tool := range tools {
		if !slices.Contains(listed, tool) {
			t.Errorf("mcp-remote lists no %s: %q", tool, listed)
		}
	}
	if text := c.text("everything__echo", `{"message":"hi"}`); text != "Echo: hi" {
		t.Errorf("mcp-remote: echo says %q", text)
	}
	if err := c.hangUp(); err != nil {
		t.Logf("mcp-remote at the end of its input: %v\n%s", err, p.stderr)
	}
}

// TestPrivateClients lets clients start a gateway of their own, since none runs.
func TestPrivateClients(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.configure(map[string]entry{"everything": {
		"command": absolute(t, serversFolder, "node_modules", ".bin", "mcp-server-everything"),
	}})
	checkForeign(t, visited{h, h.clientConfig("http://127.0.0.1:1/mcp", "none"), "pipe"}, "everything__echo")
	eventually(t, promptly, "the gateways have gone with their clients", func() bool {
		return len(processesOf(h.dir)) == 0
	})
}
