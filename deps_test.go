// SPDX-License-Identifier: Apache-2.0

package garra_test

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write deps.txt anew")

// TestLinkedPackages compares the packages of other modules that are linked
// into garra with deps.txt, so that a new dependency shows in a review.
func TestLinkedPackages(t *testing.T) {
	if _, err := os.Stat("cmd/garra"); err != nil {
		t.Skip("there is no cmd/garra")
	}
	const file = "deps.txt"
	list := exec.CommandContext(t.Context(), "go", "list", "-deps",
		"-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/garra")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = t.Output()
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return strings.HasPrefix(name, module)
	})
	slices.Sort(linked)
	text := "# Packages of other modules that are linked into garra (linux/amd64).\n" +
		"# Written by: go test -run TestLinkedPackages . -update\n" + strings.Join(linked, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("deps.txt is out of date; if the change is wanted run\n"+
			"\tgo test -run TestLinkedPackages . -update\n%s", diff)
	}
}
