// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// loadGeneral loads a folder with that config.yml.
func loadGeneral(t *testing.T, text string) *Config {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, GeneralFile), text)
	config, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestStoresAndVaultKeys(t *testing.T) {
	config := loadGeneral(t, `
vault: {recipients: [age1x, ssh-ed25519 AAAA], identity: ~/.ssh/id_ed25519}
secrets:
  op: [op, read, "op:{key}"]
  pass: {command: [pass, show], timeout: 2.5}
  desk: {keyring: garra}
mcp:
  s: {command: x, args: ["op://V/i"], env: {A: "pass:k", B: "Bearer ${desk:a b}", C: "other:k", F: "vaultfile:op:x"}}
  u: {url: "op:u", headers: {A: "vault:k"}}
`)
	want := []Store{
		{Name: "desk", Keyring: "garra", Timeout: DefaultStoreTimeout},
		{Name: "op", Command: []string{"op", "read", "op:{key}"}, Timeout: DefaultStoreTimeout},
		{Name: "pass", Command: []string{"pass", "show"}, Timeout: 2500 * time.Millisecond},
	}
	if diff := cmp.Diff(want, config.Settings.Stores); diff != "" {
		t.Error(diff)
	}
	keys := VaultKeys{Recipients: []string{"age1x", "ssh-ed25519 AAAA"}, Identities: []string{"~/.ssh/id_ed25519"}}
	if diff := cmp.Diff(keys, config.Settings.Vault); diff != "" {
		t.Error(diff)
	}
	var secrets []Finding
	for _, f := range config.Findings.With(config.Unavailable(nil)) {
		if f.Code == CodeEnvVaultUnavailable {
			secrets = append(secrets, f)
		} else if f.Code != CodeSecretArgument || f.Position() != config.Servers[0].Position("args[0]") {
			t.Errorf("unexpected %v", f)
		}
	}
	if len(config.Servers) != 2 || len(secrets) != 6 { // args, A, B, F of s; url, A of u
		t.Errorf("%d servers, %v", len(config.Servers), secrets)
	}
}

func TestBadStores(t *testing.T) {
	for text, want := range map[string]Code{
		"secrets: [op]":                             CodeSectionNotMap,
		"secrets: {Op: [op]}":                       CodeFieldInvalid,
		"secrets: {vault: [op]}":                    CodeFieldInvalid,
		"secrets: {op: op read}":                    CodeFieldType,
		"secrets: {op: []}":                         CodeFieldType,
		"secrets: {op: [op, 1]}":                    CodeFieldType,
		"secrets: {op: {}}":                         CodeFieldConflict,
		"secrets: {op: {command: [a], keyring: b}}": CodeFieldConflict,
		"secrets: {op: {command: [a], timeout: 0}}": CodeFieldRange,
		"secrets: {op: {command: [a], timout: 1}}":  CodeKeyUnknown,
		"secrets: {op: {keyring: 1}}":               CodeFieldType,
		"vault: {recipients: 1}":                    CodeFieldType,
		"vault: {identity: [a, [b]]}":               CodeFieldType,
		"vault: {recipient: a}":                     CodeKeyUnknown,
	} {
		config := loadGeneral(t, text+"\nmcp: {s: {command: x, env: {A: \"op:k\"}}}\n")
		if len(config.Findings) == 0 || config.Findings[0].Code != want {
			t.Errorf("%s: %v, want %s", text, config.Findings, want)
		}
		usable := slices.ContainsFunc(config.Settings.Stores, func(s Store) bool { return !s.Invalid })
		if len(config.Servers) != 1 || usable != (text == `secrets: {op: {command: [a], timout: 1}}`) {
			t.Errorf("%s: servers %v, stores %v", text, config.Servers, config.Settings.Stores)
		}
	}
}
