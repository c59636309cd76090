// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample returns a valid value of a field that is not its default.
func sample(f *field) any {
	switch f.name {
	case "type":
		return "stdio"
	case "url":
		return "https://example.com/mcp"
	case "start":
		return "lazy"
	case "protocolEra":
		return "modern"
	case "tools":
		return "search"
	case "sharing":
		return "session"
	case "oauth":
		return map[string]any{"clientId": "garra", "client_secret": "s", "scopes": "a b", "callbackPort": 4711}
	case "sandbox":
		return map[string]any{"mode": "off", "read": []string{"/usr"}, "network": "none"}
	}
	switch f.bind(&Server{}).(type) {
	case *bool:
		return true
	case *string:
		return "text"
	case *[]string:
		return []string{"one", "two"}
	case *map[string]string:
		return map[string]string{"NAME": "value"}
	default: // numbers
		return 17
	}
}

// base is an entry that a field can be added to.
func base(f *field) map[string]any {
	switch {
	case f.name == "command" || f.name == "url":
		return map[string]any{}
	case f.target == remoteTarget:
		return map[string]any{"url": "https://example.com"}
	}
	return map[string]any{"command": "x"}
}

// TestEverySpelling reads each spelling of each field in both files and expects the same.
func TestEverySpelling(t *testing.T) {
	for _, f := range fields() {
		entry := base(&f)
		entry[f.name] = sample(&f)
		want := loadEntry(t, ServersFile, entry)
		if reflect.DeepEqual(f.bind(want), f.bind(loadOrEmpty(t, base(&f)))) && f.name != "type" {
			t.Errorf("%s has its default value in this test", f.name)
		}
		for _, file := range []string{ServersFile, GeneralFile} {
			for _, key := range f.keys() {
				entry := base(&f)
				entry[key] = sample(&f)
				if key == f.opposite {
					entry[key] = false
				}
				got := loadEntry(t, file, entry)
				if diff := cmp.Diff(f.bind(want), f.bind(got)); diff != "" {
					t.Errorf("%s in %s: -%s +%s:\n%s", key, file, f.name, key, diff)
				}
				if got.Position(key) == got.Origin {
					t.Errorf("%s in %s has no place", key, file)
				}
			}
		}
	}
}

// loadOrEmpty loads an entry that may lack what makes it valid.
func loadOrEmpty(t *testing.T, entry map[string]any) *Server {
	t.Helper()
	if len(entry) == 0 {
		return &Server{}
	}
	return loadEntry(t, ServersFile, entry)
}

// loadEntry loads a file with one server s. JSON is YAML too.
func loadEntry(t *testing.T, file string, entry map[string]any) *Server {
	t.Helper()
	root := "mcpServers"
	if isYAML(file) {
		root = "mcp"
	}
	text, err := json.Marshal(map[string]any{root: map[string]any{"s": entry}})
	if err != nil {
		t.Fatal(err)
	}
	config := loadText(t, file, string(text))
	s, ok := config.Server("s")
	if !ok {
		t.Fatalf("%s in %s: %v", text, file, config.Findings)
	}
	return s
}

// TestSetEveryField sets each field by each of its names in both files, reads it again, and
// removes it.
func TestSetEveryField(t *testing.T) {
	for _, f := range fields() {
		for _, file := range []string{ServersFile, GeneralFile} {
			for _, key := range f.keys() {
				checkSetField(t, &f, file, key)
			}
		}
	}
}

func checkSetField(t *testing.T, f *field, file, key string) {
	t.Helper()
	d, err := OpenDocument(filepath.Join(t.TempDir(), file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(base(f))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetServer("s", text); err != nil {
		t.Fatal(err)
	}
	before := string(d.Bytes())
	value := sample(f)
	if key == f.opposite {
		value = false
	}
	if err := d.SetField("s", key, value); err != nil {
		t.Fatalf("%s: %v in:\n%s", key, err, before)
	}
	config, err := d.Config()
	if err != nil {
		t.Fatal(err)
	}
	s, ok := config.Server("s")
	if !ok {
		t.Fatalf("%s: %v in:\n%s", key, config.Findings, d.Bytes())
	}
	entry := base(f)
	entry[f.name] = sample(f)
	if diff := cmp.Diff(f.bind(loadEntry(t, file, entry)), f.bind(s)); diff != "" {
		t.Errorf("%s in %s: -want +got:\n%s", key, file, diff)
	}
	if err := d.RemoveField("s", f.name); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	// The entry of a file without any other field has to stay a map.
	if after := string(d.Bytes()); after != before && len(base(f)) > 0 {
		t.Errorf("setting and removing %s made of\n%s\nthis:\n%s", key, before, after)
	}
}

func TestCanonicalPath(t *testing.T) {
	for path, want := range map[string]string{
		"command":            "command",
		"env_file":           "envFile",
		"timeout":            "timeoutSecs",
		"enabled":            "disabled",
		"allowed_tools[2]":   "allowedTools[2]",
		"env.a_b":            "env.a_b",
		"sandbox.network[0]": "sandbox.network[0]",
		"nonsense.x":         "nonsense.x",
		"":                   "",
	} {
		if got := canonicalPath(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

func TestSplitPath(t *testing.T) {
	for path, want := range map[string][]string{
		"command":         {"command"},
		"env.A.B[0]":      {"env", "A.B[0]"},
		"headers.X":       {"headers", "X"},
		"args[2]":         {"args", "[2]"},
		"sandbox.mode":    {"sandbox", "mode"},
		"oauth.clientId":  {"oauth", "clientId"},
		"sandbox.read[1]": {"sandbox", "read", "[1]"},
	} {
		head, rest := splitPath(path)
		if diff := cmp.Diff(want, append([]string{head}, rest...)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
	for step, want := range map[string]int{"[0]": 0, "[12]": 12, "[-1]": -1, "[": -1, "[x]": -1, "0": -1, "[]": -1} {
		if got, ok := itemIndex(step); ok != (want >= 0) || ok && got != want {
			t.Errorf("%s is %d, %v", step, got, ok)
		}
	}
}

func TestTransportWords(t *testing.T) {
	for _, word := range transportWords() {
		if _, ok := transportOf(word); !ok {
			t.Errorf("%s is no transport", word)
		}
	}
	for _, word := range []string{"", "STDIO", "ws", "https", "local"} {
		if got, ok := transportOf(word); ok {
			t.Errorf("%q is the transport %s", word, got)
		}
	}
}

func ExampleFinding_String() {
	fmt.Println(Finding{
		Severity: Warning, Code: CodeKeyUnknown, File: "mcp.json", Line: 4, Column: 7, Server: "time",
		Message: `unknown key "comand"`, Fix: `did you mean "command"?`,
	})
	// Output: mcp.json:4:7: warning: server "time": unknown key "comand" (did you mean "command"?) [key.unknown]
}
