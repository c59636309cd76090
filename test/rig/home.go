// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/garraia/garra/internal/misbehave"
)

// A Home is a user of garra: folders of its own, and the environment that garra
// has there. Every process of its servers knows it by HOME, whatever became of
// its parents.
type Home struct {
	T   testing.TB
	Dir string
	env []string // on top of what every home has
	own string   // the garra of this home, unless it has none of its own
	run string   // the folder where garra tells of itself, once known
}

// NewHome makes a home in which garra has more in its environment, NAME=value each.
func NewHome(t testing.TB, env ...string) *Home {
	t.Helper()
	h := &Home{T: t, Dir: t.TempDir(), env: env}
	for _, dir := range []string{h.ConfigDir(), h.Path("state"), h.Path("run"), h.Path("work")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// OwnBinary gives the home a garra of its own, by whose file its processes are known,
// and returns that.
func (h *Home) OwnBinary() string {
	h.T.Helper()
	text, err := os.ReadFile(Binary(h.T))
	if err == nil {
		h.own = h.Path("garra")
		err = os.WriteFile(h.own, text, 0o700)
	}
	if err != nil {
		h.T.Fatal(err)
	}
	return h.own
}

// binary is the garra that this home has.
func (h *Home) binary() string {
	if h.own != "" {
		return h.own
	}
	return Binary(h.T)
}

// Path is something in the home.
func (h *Home) Path(elements ...string) string {
	return filepath.Join(append([]string{h.Dir}, elements...)...)
}

// Files are the names of all files in the home.
func (h *Home) Files() (names []string) {
	h.T.Helper()
	err := filepath.WalkDir(h.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return names
}

// ConfigDir is the configuration folder.
func (h *Home) ConfigDir() string { return h.Path("config", "garraia") }

// Environ is all that garra has in its environment. Node.js is the one that npm
// installed beside the clients, if it did.
func (h *Home) Environ() []string {
	bin := Absolute(h.T, ClientsFolder, "node_modules", ".bin")
	return append([]string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + h.Dir, "LANG=C.UTF-8",
		"XDG_CONFIG_HOME=" + h.Path("config"), "XDG_STATE_HOME=" + h.Path("state"), "XDG_RUNTIME_DIR=" + h.Path("run"),
	}, h.env...)
}

// Write writes a file of the configuration in place.
func (h *Home) Write(name, text string) {
	h.T.Helper()
	if err := os.WriteFile(filepath.Join(h.ConfigDir(), name), []byte(text), 0o600); err != nil {
		h.T.Fatal(err)
	}
}

// Replace writes a file of the configuration as editors do: beside it, and then
// renamed over it.
func (h *Home) Replace(name, text string) {
	h.T.Helper()
	h.Write(name+".swp", text)
	err := os.Rename(filepath.Join(h.ConfigDir(), name+".swp"), filepath.Join(h.ConfigDir(), name))
	if err != nil {
		h.T.Fatal(err)
	}
}

// An Entry is a server in mcp.json.
type Entry map[string]any

// With returns the entry with one more field.
func (e Entry) With(field string, value any) Entry {
	e = maps.Clone(e)
	e[field] = value
	return e
}

// Misbehaving is an entry of the server of internal/misbehave, which is
// well-behaved without flags. It is restarted without much delay.
func Misbehaving(flags ...string) Entry {
	path, args := misbehave.Command(flags...)
	return Entry{"command": path, "args": args, "restartDelaySecs": 0.1}
}

// Npx is an entry that runs an installed package by npx, as users write it: npm
// finds it from the folder, and must not download anything.
func Npx(t testing.TB, pack string, args ...string) Entry {
	t.Helper()
	return Entry{
		"command": "npx", "args": append([]string{"-y", pack}, args...),
		"cwd": Absolute(t, ServersFolder), "env": map[string]string{"npm_config_offline": "true"},
	}
}

// MCPJSON is the text of an mcp.json.
func MCPJSON(t testing.TB, servers map[string]Entry) string {
	t.Helper()
	text, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// Configure writes mcp.json.
func (h *Home) Configure(servers map[string]Entry) {
	h.T.Helper()
	h.Write("mcp.json", MCPJSON(h.T, servers))
}

// Command is a command of garra in this home.
func (h *Home) Command(args ...string) *exec.Cmd {
	h.T.Helper()
	return h.Program(h.binary(), args...)
}

// Program is a command of something else in this home.
func (h *Home) Program(path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.T.Context(), path, args...)
	cmd.Env, cmd.Dir = h.Environ(), h.Path("work")
	return cmd
}

// An outcome is what a command that ended left.
type outcome struct {
	Stdout, Stderr string
	Code           int
}

// Run runs a command to its end.
func Run(t testing.TB, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("running %q: %v", cmd.Args, err)
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Garra runs a command that must succeed and returns what it printed.
func (h *Home) Garra(args ...string) string {
	h.T.Helper()
	out := Run(h.T, h.Command(args...))
	if out.Code != 0 {
		h.T.Fatalf("garra %s: exit code %d\n%s%s", strings.Join(args, " "), out.Code, out.Stdout, out.Stderr)
	}
	return out.Stdout
}

// GarraJSON runs a command with --json and decodes what it printed.
func GarraJSON[T any](h *Home, args ...string) T {
	h.T.Helper()
	var value T
	text := h.Garra(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		h.T.Fatalf("garra %s --json: %v in %s", strings.Join(args, " "), err, text)
	}
	return value
}

// A Transcript keeps what a process writes. It is safe for concurrent use.
type Transcript struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (t *Transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// String is all that was written so far.
func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// Line reports whether one line holds all parts.
func (t *Transcript) Line(parts ...string) bool {
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
