// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// What may be left over: pools that fill and the noise of the allocator, less
// than one in ten repeats could leak.
const (
	SlackDescriptors = 10
	slackThreads     = 10
	SlackGoroutines  = 15
	SlackKB          = 16 << 10
)

// A Usage is what a process holds of what it could leak.
type Usage struct {
	Descriptors, Threads, ResidentKB int
}

// UsageOf reads what a process holds.
func UsageOf(t testing.TB, pid int) (u Usage) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	u.Descriptors = len(entries)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		switch name {
		case "Threads":
			u.Threads, err = strconv.Atoi(number)
		case "VmRSS":
			u.ResidentKB, err = strconv.Atoi(number)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// CheckUsage fails when a process holds more threads or memory than before.
func CheckUsage(t *testing.T, before, after Usage) {
	t.Helper()
	if after.Threads > before.Threads+slackThreads {
		t.Errorf("%d threads, before %d", after.Threads, before.Threads)
	}
	if after.ResidentKB > before.ResidentKB+SlackKB {
		t.Errorf("%d KB of memory, before %d", after.ResidentKB, before.ResidentKB)
	}
}

// GoroutinesOf ends a gateway by SIGQUIT, on which the Go runtime writes the
// stack of every goroutine, and counts those.
func GoroutinesOf(g *Gateway) int {
	g.T.Helper()
	g.Signal(syscall.SIGQUIT)
	n := strings.Count(g.Log.String(), "\ngoroutine ")
	if n < 5 {
		g.T.Fatalf("%d goroutines in\n%s", n, g.Log)
	}
	Eventually(g.T, Promptly, "nothing of the servers is left", func() bool { return len(ProcessesOf(g.Dir)) == 0 })
	return n
}
