// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/garraia/garra/internal/misbehave"
)

// A home is a user of garra: folders of its own, and the environment that garra
// has there. Every process of its servers knows it by HOME, whatever became of
// its parents.
type home struct {
	t   testing.TB
	dir string
	env []string // on top of what every home has
}

func newHome(t testing.TB, env ...string) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), env: env}
	for _, dir := range []string{h.configDir(), h.path("state"), h.path("run"), h.path("work")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *home) path(elements ...string) string {
	return filepath.Join(append([]string{h.dir}, elements...)...)
}

func (h *home) configDir() string { return h.path("config", "garraia") }

// environ is all that garra has in its environment. Node.js is the one that npm
// installed beside the clients, if it did.
func (h *home) environ() []string {
	bin := absolute(h.t, clientsFolder, "node_modules", ".bin")
	return append([]string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + h.dir, "LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + h.path("config"), "XDG_STATE_HOME=" + h.path("state"), "XDG_RUNTIME_DIR=" + h.path("run"),
	}, h.env...)
}

// write writes a file of the configuration in place.
func (h *home) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.configDir(), name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// replace writes a file of the configuration as editors do: beside it, and then
// renamed over it.
func (h *home) replace(name, text string) {
	h.t.Helper()
	h.write(name+".swp", text)
	err := os.Rename(filepath.Join(h.configDir(), name+".swp"), filepath.Join(h.configDir(), name))
	if err != nil {
		h.t.Fatal(err)
	}
}

// An entry is a server in mcp.json.
type entry map[string]any

// with returns the entry with one more field.
func (e entry) with(field string, value any) entry {
	e = maps.Clone(e)
	e[field] = value
	return e
}

// misbehaving is an entry of the server of internal/misbehave, which is
// well-behaved without flags. It is restarted without much delay.
func misbehaving(flags ...string) entry {
	path, args := misbehave.Command(flags...)
	return entry{"command": path, "args": args, "restartDelaySecs": 0.1}
}

// mcpJSON is the text of an mcp.json.
func mcpJSON(t testing.TB, servers map[string]entry) string {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// configure writes mcp.json.
func (h *home) configure(servers map[string]entry) {
	h.t.Helper()
	h.write("mcp.json", mcpJSON(h.t, servers))
}

// command is a command of garra in this home.
func (h *home) command(args ...string) *exec.Cmd {
	h.t.Helper()
	return h.program(absolute(h.t, *binary), args...)
}

// program is a command of something else in this home.
func (h *home) program(path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), path, args...)
	cmd.Env, cmd.Dir = h.environ(), h.path("work")
	return cmd
}

// An outcome is what a command that ended left.
type outcome struct {
	stdout, stderr string
	code           int
}

// run runs a command to its end.
func run(t testing.TB, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("running %q: %v", cmd.Args, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// garra runs a command that must succeed and returns what it printed.
func (h *home) garra(args ...string) string {
	h.t.Helper()
	out := run(h.t, h.command(args...))
	if out.code != 0 {
		h.t.Fatalf("garra %s: exit code %d\n%s%s", strings.Join(args, " "), out.code, out.stdout, out.stderr)
	}
	return out.stdout
}

// garraJSON runs a command with --json and decodes what it printed.
func garraJSON[T any](h *home, args ...string) T {
	h.t.Helper()
	var value T
	text := h.garra(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		h.t.Fatalf("garra %s --json: %v in %s", strings.Join(args, " "), err, text)
	}
	return value
}

// A transcript keeps what a process writes. It is safe for concurrent use.
type transcript struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// line reports whether one line holds all parts.
func (t *transcript) line(parts ...string) bool {
	for line := range strings.Lines(t.String()) {
		missing := false
		for _, part := range parts {
			missing = missing || !strings.Contains(line, part)
		}
		if !missing {
			return true
		}
	}
	return false
}
