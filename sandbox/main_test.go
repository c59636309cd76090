// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// roleName is the argv[0] under which the test binary plays another program's
// part: a role, named by the next argument.
const roleName = "sandbox-test-role"

func TestMain(m *testing.M) {
	Main()
	if os.Args[0] == roleName {
		os.Exit(playRole(os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

// playRole runs a role and returns its exit code.
func playRole(name string, args []string) int {
	role, ok := roles()[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no such role: %q\n", name)
		return 64
	}
	if err := role(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// eventually waits until cond holds and fails the test when it doesn't in time.
func eventually(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(within)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// wait fails the test when ch isn't closed in time.
func wait(t *testing.T, within time.Duration, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(within):
		t.Fatalf("not within %v: %s", within, what)
	}
}
