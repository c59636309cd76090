// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unit reads the assignments of a unit file.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "contrib", name))
	if err != nil {
		t.Fatal(err)
	}
	assignments := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			assignments[key] = value
		}
	}
	return assignments
}

// TestUnits holds the units of systemd to what garra does: its commands exist, it is told
// to end alone, and what it can't mend is not tried again.
func TestUnits(t *testing.T) {
	service, socket := unit(t, "garra.service"), unit(t, "garra.socket")
	words := strings.Fields(service["ExecStart"])
	if filepath.Base(words[0]) != "garra" {
		t.Fatalf("it starts %q", words)
	}
	command, rest, err := newRoot(&globals{}).Find(words[1:])
	if err != nil || command.Name() != "serve" {
		t.Fatalf("%q is no command: %v", words, err)
	}
	if err := command.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", words, err)
	}
	for key, want := range map[string]string{
		"Type":     "notify",
		"KillMode": "mixed", // the servers are garra's to end
		"Delegate": "yes",
	} {
		if service[key] != want {
			t.Errorf("%s=%s, want %s", key, service[key], want)
		}
	}
	if codes := strings.Fields(service["RestartPreventExitStatus"]); !slices.Equal(codes, []string{"2", "65"}) {
		t.Errorf("codes that a restart can't mend: %q", codes)
	}
	standard := command.Flags().Lookup("listen").DefValue
	if socket["ListenStream"] != standard {
		t.Errorf("the socket is at %s, garra's own at %s", socket["ListenStream"], standard)
	}
	if _, _, err := net.SplitHostPort(socket["ListenStream"]); err != nil {
		t.Error(err)
	}
}

// TestUnitsSatisfySystemd asks systemd itself, where it is installed.
func TestUnitsSatisfySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	folder := t.TempDir()
	for _, name := range []string{"garra.service", "garra.socket"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "contrib", name))
		if err != nil {
			t.Fatal(err)
		}
		there := strings.ReplaceAll(string(text), "%h/.local/bin/garra", "/bin/true") // the program must exist
		if err := os.WriteFile(filepath.Join(folder, name), []byte(there), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verify := exec.CommandContext(t.Context(), analyze, "verify", "--user", "garra.service", "garra.socket")
	verify.Dir = folder
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+folder)
	if out, err := verify.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
