// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"os"
	"path/filepath"
	"testing"
)

// fakeProgram writes an executable file and returns its path.
func fakeProgram(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

// A runtime is told how large its heap may become, unless the user has told it, and
// people are shown that garra did.
func TestHeapHints(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := fakeProgram(t, "node", "")
	script := fakeProgram(t, "mcp-server", "#!"+node+" --enable-source-maps\n")
	java := fakeProgram(t, "java", "")
	for name, c := range map[string]struct {
		command  string
		args     []string
		env      map[string]string
		limit    int
		variable string
		want     string // empty: it is not set
		origin   Origin
	}{
		"node":            {command: node, limit: 512, variable: "NODE_OPTIONS", want: "--max-old-space-size=384"},
		"little for node": {command: node, limit: 160, variable: "NODE_OPTIONS", want: "--max-old-space-size=64"},
		"next to nothing": {command: node, limit: 40, variable: "NODE_OPTIONS", want: "--max-old-space-size=40"},
		"a script":        {command: script, limit: 4096, variable: "NODE_OPTIONS", want: "--max-old-space-size=3072"},
		"beside others": {
			command: node, limit: 512, env: map[string]string{"NODE_OPTIONS": "--no-warnings"},
			variable: "NODE_OPTIONS", want: "--no-warnings --max-old-space-size=384",
		},
		"the user's": {
			command: node, limit: 512, env: map[string]string{"NODE_OPTIONS": "--max_old_space_size=100"},
			variable: "NODE_OPTIONS", want: "--max_old_space_size=100", origin: OriginEnv,
		},
		"an argument of node": {
			command: node, args: []string{"--max-old-space-size=9", "x.js"}, limit: 512, variable: "NODE_OPTIONS",
		},
		"no limit": {command: node, variable: "NODE_OPTIONS"},
		"java":     {command: java, limit: 500, variable: "JAVA_TOOL_OPTIONS", want: "-Xmx300m"},
		"java by the user": {
			command: java, limit: 500, env: map[string]string{"JDK_JAVA_OPTIONS": "-XX:MaxRAMPercentage=50"},
			variable: "JAVA_TOOL_OPTIONS",
		},
		"go": {command: self, args: []string{"x"}, limit: 100, variable: "GOMEMLIMIT", want: "92160KiB"},
		"go by the user": {
			command: self, limit: 100, env: map[string]string{"GOMEMLIMIT": "off"},
			variable: "GOMEMLIMIT", want: "off", origin: OriginEnv,
		},
		"another program": {command: "/bin/sh", limit: 100, variable: "NODE_OPTIONS"},
	} {
		t.Run(name, func(t *testing.T) {
			e := Entry{Server: "s", Command: c.command, Args: c.args, Env: c.env, MemoryLimitMB: c.limit}
			spec := mustBuild(t, e, unixHost(t), nil)
			if got := values(spec)[c.variable]; got != c.want {
				t.Errorf("%s is %q, not %q", c.variable, got, c.want)
			}
			want := c.origin
			if want == "" && c.want != "" {
				want = OriginMemory
			}
			if got := origins(spec)[c.variable]; got != want {
				t.Errorf("it comes from %q, not %q", got, want)
			}
		})
	}
}

func TestProgramNames(t *testing.T) {
	for file, want := range map[string]string{
		`C:\Program Files\nodejs\NPX.CMD`: "npx", `node.exe`: "node", `C:/x/java`: "java",
	} {
		s := newSystem(Host{GOOS: "windows"})
		if got := s.programName(file); got != want {
			t.Errorf("%s is %q, not %q", file, got, want)
		}
	}
}
