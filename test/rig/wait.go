// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	// Patience bounds every wait for something that will happen.
	Patience = 90 * time.Second
	// Promptly is the bound where garra promises to be quick: ten times the
	// promise and more, since the machine may be busy.
	Promptly = 10 * time.Second
)

// The folders of what npm installed.
const (
	ServersFolder = "../servers"
	ClientsFolder = "../clients"
)

// DefineFlags defines the flags that the tests of all packages have. It is called once,
// before flags are read.
func DefineFlags() {
	flag.String(binaryFlag, filepath.FromSlash("../../bin/garra"), "the garra that is tested")
}

// binaryFlag names the flag.
const binaryFlag = "garra"

// Binary returns the garra that is tested.
func Binary(t testing.TB) string {
	t.Helper()
	return Absolute(t, flag.Lookup(binaryFlag).Value.String())
}

// Absolute returns the absolute path of something beside this package.
func Absolute(t testing.TB, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (make e2e builds and installs what is needed)", err)
	}
	return path
}

// Eventually waits for a condition.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}
