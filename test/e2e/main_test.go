// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
)

var binary = flag.String("garra", filepath.FromSlash("../../bin/garra"), "the garra that is tested")

const (
	// patience bounds every wait for something that will happen.
	patience = 90 * time.Second
	// promptly is the bound where garra promises to be quick: ten times the
	// promise and more, since the machine may be busy.
	promptly = 10 * time.Second
)

// The folders of what npm installed.
const (
	serversFolder = "../servers"
	clientsFolder = "../clients"
)

// recorder is the first argument of the test binary as a server that writes the
// first message which it gets to a file, its second argument, and ends.
const recorder = "garra-e2e-recorder"

func TestMain(m *testing.M) {
	misbehave.Main()
	if len(os.Args) == 3 && os.Args[1] == recorder {
		record(os.Args[2])
		return
	}
	if len(os.Args) == 6 && os.Args[1] == behindGarra {
		os.Exit(runBehindGarra(os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	}
	os.Exit(m.Run())
}

func record(file string) {
	line, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err == nil {
		err = os.WriteFile(file, line, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording the first message:", err)
	}
}

// absolute returns the absolute path of something beside this package.
func absolute(t testing.TB, elements ...string) string {
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

// eventually waits for a condition.
func eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
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
