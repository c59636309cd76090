// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The ways in which a process of the tree can be: each script leaves one sleep
// behind, or more, and goes on.
var workers = map[string]string{
	"background":     `sleep 1000 &`,
	"own session":    `setsid sleep 1000 &`,
	"double fork":    `(sleep 1000 &)`,
	"daemon":         `(setsid sh -c 'sleep 1000 & exit' &)`,
	"ignoring":       `(trap '' TERM HUP INT; exec sleep 1000) &`,
	"stopped":        `sleep 1000 & kill -STOP $!`,
	"deep":           `sh -c 'sh -c "setsid sh -c \"sleep 1000; :\" & wait" & wait' &`,
	"own group":      `bash -c 'set -m; sleep 1000 &'`,
	"several groups": `for i in 1 2 3 4 5; do setsid sleep 1000 & sleep 1000 & done`,
}

func TestTreeEndsWithItsLeader(t *testing.T) {
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			s := shell(t, worker+`
				echo started; read go; exit 5`, mark)
			s.line(t)
			eventually(t, 5*time.Second, "a worker runs", func() bool { return len(marked(mark)) > 1 })
			s.stdin.WriteString("\n")
			wait(t, 2*time.Second, "the leader has exited", s.Exited())
			wait(t, 2*time.Second, "the tree is gone", s.Gone())
			wantNothingLeft(t, mark)
			if got := s.Exit(); got.Code != 5 {
				t.Errorf("got %v, want exit status 5", got)
			}
		})
	}
}

func TestKillEndsTheTree(t *testing.T) {
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			s := shell(t, `trap '' TERM; `+worker+`
				echo started; while :; do sleep 1; done`, mark)
			s.line(t)
			eventually(t, 5*time.Second, "a worker runs", func() bool { return len(marked(mark)) > 1 })
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			wait(t, 2*time.Second, "the tree is gone", s.Gone())
			wantNothingLeft(t, mark)
		})
	}
}

func TestTerminateReachesBehindAWrapper(t *testing.T) {
	mark := newMark(t)
	s := shell(t, `sleep 1000; echo never`, mark) // the shell forwards nothing
	wantMarked(t, mark, 2)
	if err := s.Terminate(); err != nil {
		t.Fatal(err)
	}
	wait(t, 2*time.Second, "the wrapper has exited", s.Exited())
	wait(t, 2*time.Second, "the tree is gone", s.Gone())
	wantNothingLeft(t, mark)
	if got := s.Exit(); got.Signal != syscall.SIGTERM {
		t.Errorf("got %v, want SIGTERM", got)
	}
}

func TestTerminateReachesWhatLeftTheGroup(t *testing.T) {
	s := shell(t, `trap : TERM
		(setsid sh -c 'trap "echo worker; exit" TERM; echo ready; while :; do sleep 0.01; done' &)
		while :; do sleep 0.01; done`)
	if got := s.line(t); got != "ready" {
		t.Fatalf("got %q", got)
	}
	if err := s.Terminate(); err != nil {
		t.Fatal(err)
	}
	if got := s.line(t); got != "worker" {
		t.Errorf("got %q, want the worker's answer to SIGTERM", got)
	}
	if closed(s.Exited()) {
		t.Error("the leader, which ignores SIGTERM, has exited")
	}
}

func TestSignalArrivesOncePerProcess(t *testing.T) {
	s := shell(t, `trap 'echo got' USR1; echo ready; while :; do read line && echo $line; done`)
	s.line(t)
	for range 3 {
		if err := s.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		if got := s.line(t); got != "got" {
			t.Fatalf("got %q", got)
		}
	}
	s.stdin.WriteString("end\n")
	if got := s.line(t); got != "end" {
		t.Errorf("got %q after three signals and their three answers", got)
	}
}

func TestIgnoringTermAndEOF(t *testing.T) {
	s := shell(t, `trap 'echo no' TERM HUP INT; echo ready; while :; do sleep 0.01; done`)
	s.line(t)
	s.stdin.Close()
	for range 2 {
		if err := s.Terminate(); err != nil {
			t.Fatal(err)
		}
		if got := s.line(t); got != "no" {
			t.Fatalf("its answer to SIGTERM: %q", got)
		}
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, 2*time.Second, "the tree is gone", s.Gone())
	if got := s.Exit(); got.Signal != syscall.SIGKILL {
		t.Errorf("got %v, want SIGKILL", got)
	}
}

// A chain of processes, each in a session of its own, each gone as soon as it
// has started the next: hard to catch. It ends by itself, or nobody could run
// this test against a launcher that fails it.
const bomb = `#!/bin/sh
[ "$1" -lt 3000 ] || exit
setsid sh "$0" $(($1 + 1)) &
`

func TestForkBombIsOutrun(t *testing.T) {
	script := filepath.Join(t.TempDir(), "bomb")
	if err := os.WriteFile(script, []byte(bomb), 0o755); err != nil {
		t.Fatal(err)
	}
	mark := newMark(t)
	s := start(t, Spec{
		Path: "/bin/sh",
		Args: []string{"sh", "-c", `for i in 1 2 3 4 5 6 7 8; do sh "$0" 0 & done; echo lit; read wait`, script},
		Env:  withPath([]string{mark}),
	})
	s.line(t)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, 5*time.Second, "the tree is gone", s.Gone())
	if left := marked(mark); len(left) > 0 {
		t.Errorf("alive after Gone: %v", left)
	}
}

func TestManyProcesses(t *testing.T) {
	mark := newMark(t)
	s := shell(t, `for i in $(seq 150); do sleep 1000 & setsid sleep 1000 & done; echo started; read wait`, mark)
	s.line(t)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, 5*time.Second, "the tree is gone", s.Gone())
	wantNothingLeft(t, mark)
}

func TestStoppedLauncherStillKills(t *testing.T) {
	mark := newMark(t)
	s := shell(t, `setsid sleep 1000 & kill -STOP $PPID; echo done; read wait`, mark)
	s.line(t)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, 5*time.Second, "the tree is gone", s.Gone())
	wantNothingLeft(t, mark)
}

func TestLauncherOutlivesSignalsToItsGroup(t *testing.T) {
	s := shell(t, `echo ready; read wait; echo $wait`)
	s.line(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1} {
		if err := s.launcher.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	s.stdin.WriteString("alive\n")
	if got := s.line(t); got != "alive" {
		t.Errorf("got %q", got)
	}
	wait(t, 5*time.Second, "the server has exited", s.Exited())
	if s.Exit().Lost {
		t.Error("the launcher was lost")
	}
}

func TestBothWaysOfFindingChildrenAgree(t *testing.T) {
	s := shell(t, `sleep 1000 & sleep 1000 & echo ready; read wait`)
	s.line(t)
	got, want := childrenByParent(s.PID()), children(s.PID())
	slices.Sort(got)
	slices.Sort(want)
	if len(want) != 2 || !slices.Equal(got, want) {
		t.Errorf("by parent %v, by the kernel's list %v; want the same two", got, want)
	}
}

func TestParseStatWithHostileNames(t *testing.T) {
	for text, want := range map[string][2]int{
		"12 (sh) S 7 12 12 0 -1":           {12, 7},
		"12 (a) S 99 (b) S 7 12 12":        {12, 7},
		"12 (\n) R 8 1":                    {12, 8},
		"":                                 {},
		"12 (sh":                           {},
		"12 (sh)":                          {},
		fmt.Sprintf("%d (x) Z 1 0", 1<<22): {1 << 22, 1},
	} {
		pid, parent := parseStat([]byte(text))
		if got := [2]int{pid, parent}; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestServerHasItsOwnGroup(t *testing.T) {
	s := shell(t, `read wait`)
	if pgid, err := unix.Getpgid(s.PID()); err != nil || pgid != s.PID() {
		t.Errorf("process group %d, %v; want the server's own, %d", pgid, err, s.PID())
	}
	ours, _ := unix.Getsid(0)
	if sid, err := unix.Getsid(s.PID()); err != nil || sid == ours {
		t.Errorf("session %d, %v; want another than the host's", sid, err)
	}
}

func TestLauncherIsNamedAndHoldsNothing(t *testing.T) {
	t.Setenv("SANDBOX_TEST_CANARY", "of the host")
	s := shell(t, `echo ready; read wait`, "SECRET=of the server")
	s.line(t)
	proc := fmt.Sprintf("/proc/%d/", s.launcher.Pid)
	for name, want := range map[string]string{
		"comm":    launcherName + "\n",
		"cmdline": launcherName + "\x00",
		"environ": strings.Join(launcherEnv(), "\x00") + "\x00",
	} {
		got, err := os.ReadFile(proc + name)
		if err != nil || string(got) != want {
			t.Errorf("%s of the launcher: %q, %v; want %q", name, got, err, want)
		}
	}
	for _, fd := range []string{"0", "1", "2"} {
		eventually(t, 2*time.Second, "the launcher gives up descriptor "+fd, func() bool {
			target, _ := os.Readlink(proc + "fd/" + fd)
			return target == os.DevNull
		})
	}
}
