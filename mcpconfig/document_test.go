// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openText returns a document of that text.
func openText(t testing.TB, name, text string) *Document {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, text)
	d, err := OpenDocument(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type edit func(*Document) error

func setField(server, field string, value any) edit {
	return func(d *Document) error { return d.SetField(server, field, value) }
}

func setServer(server, fields string) edit {
	return func(d *Document) error { return d.SetServer(server, []byte(fields)) }
}

func removeField(server, field string) edit {
	return func(d *Document) error { return d.RemoveField(server, field) }
}

func removeServer(server string) edit {
	return func(d *Document) error { return d.RemoveServer(server) }
}

func renameServer(server, name string) edit {
	return func(d *Document) error { return d.RenameServer(server, name) }
}

// lines joins lines, each with a line feed.
func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

var commented = lines(
	`// Our servers.`,
	`{`,
	`    "mcpServers": {`,
	`        // Reads files.`,
	`        "files": {`,
	`            "command": "npx", // found in PATH`,
	`            "args": ["-y", /* pinned */ "files@1.2.3"],`,
	`            "env": {"LEVEL": "debug"},`,
	`            "custom": {"kept": [1.50, 1e3]},`,
	`        },`,
	`        /* last */`,
	`        "time": {"command": "uvx"}`,
	`    }`,
	`}`,
)

func TestEditJSON(t *testing.T) {
	for _, tt := range []struct {
		name     string
		edit     edit
		old, new string // what changes in the commented text
	}{
		{"replace text", setField("files", "command", "bunx"), `"npx", //`, `"bunx", //`},
		{
			"replace a list", setField("files", "args", []string{"a", `b"\`}),
			`["-y", /* pinned */ "files@1.2.3"]`, `["a", "b\"\\"]`,
		},
		{"replace an item", setField("files", "args[1]", "files@2"), `"files@1.2.3"`, `"files@2"`},
		{
			"add a field before a trailing comma", setField("files", "timeoutSecs", 30),
			"[1.50, 1e3]},\n", "[1.50, 1e3]},\n            \"timeoutSecs\": 30,\n",
		},
		{
			"add a part", setField("files", "env.TOKEN", "vault:K"),
			`{"LEVEL": "debug"}`, `{"LEVEL": "debug", "TOKEN": "vault:K"}`,
		},
		{
			"add to a line", setField("time", "enabled", false),
			`{"command": "uvx"}`, `{"command": "uvx", "enabled": false}`,
		},
		{
			"add a map in a line", setField("time", "env.A", "1"),
			`{"command": "uvx"}`, `{"command": "uvx", "env": {"A": "1"}}`,
		},
		{
			"add a map", setField("files", "sandbox.read", []string{"/"}),
			"[1.50, 1e3]},\n",
			"[1.50, 1e3]},\n            \"sandbox\": {\n                \"read\": [\"/\"]\n            },\n",
		},
		{
			"add a server", setServer("new", `{"command":"x","env":{"A":"1"},"n":1.0,"e":{}}`),
			`        "time": {"command": "uvx"}` + "\n",
			`        "time": {"command": "uvx"},` + "\n" + strings.Join([]string{
				`        "new": {`,
				`            "command": "x",`,
				`            "env": {`,
				`                "A": "1"`,
				`            },`,
				`            "n": 1.0,`,
				`            "e": {}`,
				`        }`,
				``,
			}, "\n"),
		},
		{
			"replace a server",
			setServer("time", `{"command":"y"}`),
			`{"command": "uvx"}`,
			"{\n            \"command\": \"y\"\n        }",
		},
		{
			"remove a field", removeField("files", "args"),
			`            "args": ["-y", /* pinned */ "files@1.2.3"],` + "\n", ``,
		},
		{"remove a commented field", removeField("files", "command"), `"command": "npx", //`, `//`},
		{"remove the only part", removeField("files", "env.LEVEL"), `{"LEVEL": "debug"}`, `{}`},
		{
			"remove the last server",
			removeServer("time"),
			"},\n        /* last */\n        \"time\": {\"command\": \"uvx\"}\n",
			"}\n        /* last */\n",
		},
		{"rename", renameServer("time", "clock"), `"time"`, `"clock"`},
		{"nothing to remove", removeField("files", "cwd"), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkEdit(t, ServersFile, commented, tt.edit, change{tt.old, tt.new})
			crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
			checkEdit(t, ServersFile, bom+crlf(commented), tt.edit, change{crlf(tt.old), crlf(tt.new)})
		})
	}
}

var commentedYAML = lines(
	`# Our servers.`,
	`gateway: {port: 3888}  # GarraIA's`,
	`mcp:`,
	`  # Reads files.`,
	`  files:`,
	`    command: npx   # found in PATH`,
	`    args:  # pinned`,
	`      - -y`,
	`      - "files@1.2.3"`,
	`    env:`,
	`      LEVEL: debug`,
	`      PIN: 0123`,
	`    custom: {kept: [1.50, 0x1F]}`,
	`    note: |`,
	`      # not a comment`,
	`      text`,
	``,
	`  # Tells the time.`,
	`  time: {command: uvx, args: [x]}  # inline`,
	``,
	`# the end`,
	`agent:`,
	`  name: g`,
)

func TestEditYAML(t *testing.T) {
	for _, tt := range []struct {
		name     string
		edit     edit
		old, new string
	}{
		{"replace text", setField("files", "command", "bunx"), "npx   #", "bunx   #"},
		{"quote text", setField("files", "command", "yes"), "npx   #", `"yes"   #`},
		{
			"replace a block list", setField("files", "args", []string{"a", "b: c"}),
			"args:  # pinned\n      - -y\n      - \"files@1.2.3\"\n", "args: [a, \"b: c\"]  # pinned\n",
		},
		{"replace an item", setField("files", "args[1]", "files@2"), `"files@1.2.3"`, `files@2`},
		{
			"replace a map", setField("files", "env", map[string]string{"A": "0123"}),
			"      LEVEL: debug\n      PIN: 0123\n", "      A: \"0123\"\n",
		},
		{"replace a part", setField("files", "env.PIN", "4"), "PIN: 0123", `PIN: "4"`},
		{
			"add a part",
			setField("files", "env.TOKEN", "vault:K"),
			"0123\n",
			"0123\n      TOKEN: \"vault:K\"\n",
		},
		{
			"add after a block scalar",
			setField("files", "timeout", 30),
			"      text\n",
			"      text\n    timeout: 30\n",
		},
		{"add to a line", setField("time", "enabled", false), "[x]}", "[x], enabled: false}"},
		{
			"add a map",
			setField("files", "sandbox.mode", "off"),
			"      text\n",
			"      text\n    sandbox:\n      mode: \"off\"\n",
		},
		{
			"add a server", setServer("new", `{"command":"x","env":{"A":"1"},"n0":1.0,"e":{},"l":[]}`),
			"  # inline\n", lines(
				"  # inline", "  new:", "    command: x", "    env:", `      A: "1"`,
				"    n0: 1.0", "    e: {}", "    l: []",
			),
		},
		{
			"replace a server", setServer("time", `{"command":"z"}`),
			"time: {command: uvx, args: [x]}  #", "time:\n    command: z  #",
		},
		{
			"remove a field",
			removeField("files", "args"),
			"    args:  # pinned\n      - -y\n      - \"files@1.2.3\"\n",
			"",
		},
		{"remove from a line", removeField("time", "args"), ", args: [x]", ""},
		{"remove the first from a line", removeField("time", "command"), "command: uvx, ", ""},
		{"remove a server", removeServer("time"), "  time: {command: uvx, args: [x]}  # inline\n", ""},
		{"rename", renameServer("time", "clock"), "time: {", "clock: {"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			checkEdit(t, GeneralFile, commentedYAML, tt.edit, change{tt.old, tt.new})
			crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
			checkEdit(t, GeneralFile, bom+crlf(commentedYAML), tt.edit, change{crlf(tt.old), crlf(tt.new)})
		})
	}
}

// change is what should become of a text: its only piece old is new.
type change struct{ old, new string }

// checkEdit carries out an edit and compares the text with the change.
func checkEdit(t *testing.T, name, text string, do edit, c change) {
	t.Helper()
	if strings.Count(text, c.old) != 1 && c.old != "" {
		t.Fatalf("the text has %q %d times", c.old, strings.Count(text, c.old))
	}
	d := openText(t, name, text)
	if err := do(d); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, c.old, c.new, 1)
	if diff := cmp.Diff(want, string(d.Bytes())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(d.Path()); string(got) != want {
		t.Errorf("the file holds %q", got)
	}
}

func TestEditRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		edit             edit
		want             error // nil for any
	}{
		{"no server", ServersFile, `{}`, setField("a", "cwd", "x"), ErrNoServer},
		{
			"server twice", ServersFile,
			`{"mcpServers": {"a": {}, "a": {}}}`,
			removeServer("a"),
			ErrNoServer,
		},
		{
			"name taken", ServersFile,
			`{"mcpServers": {"a": {}, "b": {}}}`,
			renameServer("a", "b"),
			ErrServerExists,
		},
		{"unknown field", ServersFile, `{"mcpServers": {"a": {}}}`, setField("a", "comand", "x"), nil},
		{
			"not a map", ServersFile,
			`{"mcpServers": {"a": {"env": 5}}}`,
			setField("a", "env.A", "x"),
			ErrNotEditable,
		},
		{"section not a map", ServersFile, `{"mcpServers": []}`, setServer("a", `{}`), ErrNotEditable},
		{
			"no such item", ServersFile,
			`{"mcpServers": {"a": {"args": []}}}`,
			setField("a", "args[0]", "x"),
			ErrNotEditable,
		},
		{"no object", ServersFile, `{}`, setServer("a", `[]`), nil},
		{"no JSON", ServersFile, `{}`, setServer("a", `{`), nil},
		{"no value", ServersFile, `{"mcpServers": {"a": {}}}`, setField("a", "cwd", func() {}), nil},
		{
			"no flag", ServersFile,
			`{"mcpServers": {"a": {"enabled": true}}}`,
			setField("a", "disabled", 1),
			nil,
		},
		{
			"through an alias", GeneralFile,
			"b: &b {A: x}\nmcp:\n  a:\n    env: *b\n",
			setField("a", "env.A", "y"),
			ErrNotEditable,
		},
		{
			"anchored", GeneralFile,
			"mcp:\n  a: {cwd: &x y}\n  b: {cwd: *x}\n",
			setField("a", "cwd", "z"),
			ErrNotEditable,
		},
		{
			"anchor removed", GeneralFile,
			"mcp:\n  a: &x {cwd: y}\n  b: *x\n",
			removeServer("a"),
			ErrNotEditable,
		},
		{
			"merged removed", GeneralFile,
			"b: &b {cwd: x}\nmcp:\n  a:\n    <<: *b\n    command: c\n",
			removeField("a", "cwd"),
			ErrNotEditable,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openText(t, tt.file, tt.text)
			err := tt.edit(d)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if got := string(d.Bytes()); got != tt.text || d.Changed() {
				t.Errorf("a refused edit left %q", got)
			}
		})
	}
}

func TestOpenDocumentRefusesBrokenFiles(t *testing.T) {
	for name, text := range map[string]string{
		ServersFile: `{"mcpServers": {`,
		GeneralFile: "mcp: [\n",
		"x.json":    `[]`,
	} {
		path := filepath.Join(t.TempDir(), name)
		writeFile(t, path, text)
		_, err := OpenDocument(path)
		ferr, ok := errors.AsType[*FileError](err)
		if !ok || ferr.Path != path || ferr.Finding.Line == 0 {
			t.Errorf("opening %q: %v, want a FileError with a line", text, err)
		}
	}
}

func TestSaveNewFile(t *testing.T) {
	for _, name := range []string{ServersFile, GeneralFile} {
		path := filepath.Join(t.TempDir(), name)
		d, err := OpenDocument(path)
		if err != nil {
			t.Fatal(err)
		}
		if d.Hash() != "" {
			t.Errorf("a file that isn't there has hash %q", d.Hash())
		}
		if err := d.SetServer("a", []byte(`{"command": "x"}`)); err != nil {
			t.Fatal(err)
		}
		if err := d.Save(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		config, err := Load(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := config.Server("a"); !ok || s.Command != "x" {
			t.Errorf("the saved server reads as %+v", s)
		}
	}
}

func TestSaveConflicts(t *testing.T) {
	conflict := func(d *Document) bool {
		_, ok := errors.AsType[*ConflictError](d.Save())
		return ok
	}
	d := openText(t, ServersFile, `{"mcpServers": {"a": {}}}`)
	if err := d.RemoveServer("a"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, d.Path(), `{"mcpServers": {"b": {}}}`)
	if !conflict(d) {
		t.Error("saved over a change")
	}
	if err := os.Remove(d.Path()); err != nil {
		t.Fatal(err)
	}
	if !conflict(d) {
		t.Error("saved over a removal")
	}

	fresh, err := OpenDocument(filepath.Join(t.TempDir(), ServersFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.SetServer("a", []byte(`{"command": "x"}`)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, fresh.Path(), "")
	if !conflict(fresh) {
		t.Error("saved over a file that came to be")
	}
	if got, _ := os.ReadFile(fresh.Path()); len(got) != 0 {
		t.Errorf("the other's file now holds %q", got)
	}
}

func TestSaveTwice(t *testing.T) {
	d := openText(t, ServersFile, `{"mcpServers": {"a": {}}}`)
	for _, cwd := range []string{"x", "y"} {
		if err := d.SetField("a", "cwd", cwd); err != nil {
			t.Fatal(err)
		}
		if !d.Changed() {
			t.Error("an edit is no change")
		}
		if err := d.Save(); err != nil {
			t.Fatal(err)
		}
		config, err := Load(filepath.Dir(d.Path()))
		if err != nil {
			t.Fatal(err)
		}
		if d.Changed() || config.Files[0].Hash != d.Hash() {
			t.Errorf("after saving: changed %v, hash %q, file %q", d.Changed(), d.Hash(), config.Files[0].Hash)
		}
	}
}

func TestSaveWithoutChanges(t *testing.T) {
	d := openText(t, ServersFile, `{"mcpServers": {}}`)
	if err := os.Chmod(d.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(d.Path()); info.Mode().Perm() != 0o644 {
		t.Error("saving nothing wrote the file")
	}
}

// TestDocumentConfig checks that findings of an edit can be had before it is saved.
func TestDocumentConfig(t *testing.T) {
	d := openText(t, ServersFile, `{"mcpServers": {"a": {"command": "x"}}}`)
	writeFile(t, filepath.Join(filepath.Dir(d.Path()), GeneralFile), "mcp:\n  b: {command: y}\n")
	if err := d.SetField("a", "timeoutSecs", -1); err != nil {
		t.Fatal(err)
	}
	config, err := d.Config()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := config.Server("b"); !ok {
		t.Error("the other file was not read")
	}
	found := config.Findings.Of("a")
	if len(found) != 1 || found[0].Code != CodeFieldRange {
		t.Errorf("findings %v, want one of %s", found, CodeFieldRange)
	}
	if saved, _ := Load(config.Dir); len(saved.Findings) != 0 {
		t.Errorf("the file on disk has findings: %v", saved.Findings)
	}
}

// TestSetServerKeepsText checks that numbers and key order come through as given.
func TestSetServerKeepsText(t *testing.T) {
	const fields = `{"z": 1.50, "command": "x", "a": 12345678901234567890, "n": null, "l": [true, {"k": -0.0}]}`
	for _, name := range []string{ServersFile, GeneralFile} {
		d := openText(t, name, "{}")
		if err := d.SetServer("s", json.RawMessage(fields)); err != nil {
			t.Fatal(err)
		}
		text := string(d.Bytes())
		for _, want := range []string{"1.50", "12345678901234567890", "-0.0", "null"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lost %s: %s", name, want, text)
			}
		}
		if strings.Index(text, "z") > strings.Index(text, "command") {
			t.Errorf("%s has another order: %s", name, text)
		}
	}
}
