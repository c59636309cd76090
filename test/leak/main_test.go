// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
)

var binary = flag.String("garra", filepath.FromSlash("../../bin/garra"), "the garra that is tested")

// patience bounds every wait for something that will happen.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	misbehave.Main()
	os.Exit(m.Run())
}

// absolute returns the absolute path of something that must be there.
func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (make build)", err)
	}
	return path
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
