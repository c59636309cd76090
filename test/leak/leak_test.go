// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// may tells whether a canary may be seen at a place: by the process or the server
// that it is for.
func may(where string, c *canary) bool {
	switch where {
	case "the server at the url":
		return c.mayHave("web")
	case "the server that refuses":
		return c.mayHave("refused")
	case "process of garra":
		return c.mayHave("")
	}
	server, ok := strings.CutPrefix(where, "process of ")
	return ok && c.mayHave(server)
}

// TestNothingLeaks looks for every canary in all that left garra.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "console"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			h := live(t, absolute(t, *binary), format)
			h.checkUse()
			for _, l := range h.search(h.canaries, may) {
				t.Error(l)
			}
		})
	}
}

// A mutation is one change of the source by which garra leaks: standard error and
// answers as servers wrote them, the passphrase in the environment, errors that show
// what references have become.
type mutation struct {
	name, file, old, new string
	where, canary        string // where the leak must be found
}

func mutations() []mutation {
	return []mutation{
		{
			name: "stderr", file: "supervisor/ring.go",
			old: "secrets.Writer(lines)", new: "new(redact.Set).Writer(lines)",
			where: "GET /admin/mcp/full/logs", canary: "database",
		},
		{
			name: "answers", file: "supervisor/link.go",
			old: "l.redact.JSON(frame)", new: "new(redact.Set).JSON(frame)",
			where: "a client of /mcp", canary: "odd",
		},
		{
			name: "passphrase", file: "internal/ownenv/ownenv.go",
			old: "\tforget(name)\n", new: "",
			where: "process of garra", canary: "passphrase",
		},
		{
			name: "errors", file: "envbuild/build.go", old: "\tb.conceal()\n", new: "",
			where: "GET /admin/mcp/away", canary: "cwd",
		},
	}
}

// TestLeaksAreFound does the same with binaries that leak.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	for _, m := range mutations() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			v := newVisit(t, m.build(t), "json")
			v.routes()
			v.processes()
			v.stop()
			found := v.search(v.canaries, may)
			for _, l := range found {
				if l.where == m.where && l.canary == m.canary {
					return
				}
			}
			t.Errorf("%s: the canary %q was not found; what was: %v", m.where, m.canary, found)
		})
	}
}

// build builds garra with the change.
func (m mutation) build(t *testing.T) string {
	t.Helper()
	file := absolute(t, filepath.Join("..", "..", filepath.FromSlash(m.file)))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s has %q %d times: the source has changed, and this test must follow", m.file, m.old, n)
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	changed, overlay, out := in("changed.go"), in("overlay.json"), in("garra")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		changed: strings.Replace(string(text), m.old, m.new, 1), overlay: string(replace),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", out, "./cmd/garra")
	cmd.Dir = filepath.Join("..", "..")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}
