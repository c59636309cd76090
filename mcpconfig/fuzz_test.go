// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func FuzzLoadJSON(f *testing.F) { fuzzLoad(f, ServersFile) }

func FuzzLoadYAML(f *testing.F) { fuzzLoad(f, GeneralFile) }

// fuzzLoad loads arbitrary text and edits what could be loaded.
func fuzzLoad(f *testing.F, name string) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*d", "*", name))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, name)
	f.Fuzz(func(t *testing.T, text []byte) {
		writeFile(t, path, string(text))
		config, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		checkPositions(t, config)
		d, err := OpenDocument(path)
		if (err != nil) != (len(config.Unparsable()) > 0) {
			t.Fatalf("opening to edit: %v, but loading says %v", err, config.Unparsable())
		}
		if err != nil {
			return
		}
		if string(d.Bytes()) != string(text) {
			t.Fatal("a document without edits has other bytes")
		}
		checkTree(t, d.src.root, len(d.src.data))
		checkRoundTrip(t, d, config)
	})
}

// checkTree fails when a node lies outside of the text or of its parent.
func checkTree(t *testing.T, n *node, size int) {
	t.Helper()
	n.walk(func(n *node) {
		if n.start < 0 || n.start > size || n.end > size || n.end >= 0 && n.end < n.start {
			t.Fatalf("a node is at %d to %d of %d bytes", n.start, n.end, size)
		}
		for _, m := range n.members {
			if m.keyStart < 0 || m.keyStart > size || m.keyEnd > size {
				t.Fatalf("a key is at %d to %d of %d bytes", m.keyStart, m.keyEnd, size)
			}
		}
	})
}

// checkRoundTrip sets a field of each server and reads it again. A refusal is fine, as long as
// it leaves the text alone; an edit that is accepted has to be there and be all there is.
func checkRoundTrip(t *testing.T, d *Document, config *Config) {
	t.Helper()
	for _, s := range config.Servers {
		if s.Origin.File != d.src.name {
			continue
		}
		const value = "fuzzed: \"text\" # \u2028 'x'"
		before := string(d.Bytes())
		if err := d.SetField(s.Name, "env.FUZZED", value); err != nil {
			if string(d.Bytes()) != before {
				t.Fatalf("a refused edit changed the text: %v", err)
			}
			continue
		}
		after, err := d.Config()
		if err != nil {
			t.Fatal(err)
		}
		edited, ok := after.Server(s.Name)
		if s.Transport == Stdio && (!ok || edited.Env["FUZZED"] != value) {
			t.Fatalf("the edited server is %+v", edited)
		}
		for _, other := range config.Servers {
			if again, ok := after.Server(other.Name); !ok || other.Name != s.Name && again.NeedsRestart(other) {
				t.Fatalf("the edit of %s changed %s to %+v", s.Name, other.Name, again)
			}
		}
		if strings.Count(string(d.Bytes()), "\n") < strings.Count(before, "\n") {
			t.Fatalf("the edit removed lines: %q became %q", before, d.Bytes())
		}
		config = after
	}
}

// FuzzReferences checks that references are found without a panic and that no name holds braces.
func FuzzReferences(f *testing.F) {
	for _, seed := range []string{"", "${A}", "$${A}", "${A:-${B}}", "vault:K", "${vault:K}x${", "$A", "${env:A}$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range references(text, len(text)%2 == 0, nil) {
			name, _, _ := strings.Cut(r.name, ":-") // a default may hold anything but an end
			if r.kind == variableReference && (!strings.Contains(text, r.name) ||
				strings.ContainsAny(name, "{}$") || strings.Contains(r.name, "}")) {
				t.Fatalf("the reference %q of %q", r.name, text)
			}
		}
	})
}
