// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpconfig

import (
	"os"
	"path/filepath"
	"testing"
)

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"/home/x/.config/garraia/mcp.json": "/home/x/.config/garraia/mcp.json",
		"/a b":                             "'/a b'",
		"it's":                             `'it'\''s'`,
		"$(x)":                             "'$(x)'",
		"":                                 "''",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestExposed checks which files are reported for their mode.
func TestExposed(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		mode             os.FileMode
		want             int
	}{
		{"value", ServersFile, `{"mcpServers": {"s": {"command": "x", "env": {"A": "1"}}}}`, 0o644, 1},
		{"header", ServersFile, `{"mcpServers": {"s": {"url": "http://x", "headers": {"A": "1"}}}}`, 0o640, 1},
		{"other root", ServersFile, `{"servers": {"s": {"command": "x", "env": {"A": 5}}}}`, 0o604, 1},
		{"client", ServersFile, `{"mcpServers": {"s": {"url": "http://x", "oauth": {"clientSecret": "1"}}}}`, 0o640, 1},
		{"no secret", ServersFile, `{"mcpServers": {"s": {"url": "http://x", "oauth": {"clientId": "1"}}}}`, 0o640, 0},
		{"YAML", GeneralFile, "mcp: {s: {command: x, env: {A: b}}}", 0o666, 1},
		{"private", ServersFile, `{"mcpServers": {"s": {"command": "x", "env": {"A": "1"}}}}`, 0o600, 0},
		{"stricter", ServersFile, `{"mcpServers": {"s": {"command": "x", "env": {"A": "1"}}}}`, 0o400, 0},
		{"reference", ServersFile, `{"mcpServers": {"s": {"command": "x", "env": {"A": "${A}"}}}}`, 0o644, 0},
		{"empty", ServersFile, `{"mcpServers": {"s": {"command": "x", "env": {"A": ""}}}}`, 0o644, 0},
		{"no values", ServersFile, `{"mcpServers": {"s": {"command": "x", "args": ["a"]}}}`, 0o644, 0},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, tt.file)
		writeFile(t, path, tt.text)
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		config, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, f := range config.Findings {
			if f.Code == CodeFileExposed {
				got++
			}
		}
		if got != tt.want {
			t.Errorf("%s: %d findings of %s, want %d", tt.name, got, CodeFileExposed, tt.want)
		}
	}
}
