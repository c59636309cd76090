// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestKilledHostLeavesNothing(t *testing.T) {
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			host := role(t, "host", `trap '' TERM HUP
				`+worker+`
				while :; do sleep 1; done`, mark)
			_, launcher := startHost(t, host)
			eventually(t, 5*time.Second, "a worker runs", func() bool { return len(marked(mark)) > 1 })
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			wantNothingLeft(t, mark)
			eventually(t, 2*time.Second, "the launcher is gone", func() bool {
				_, err := os.Stat(fmt.Sprintf("/proc/%d/exe", launcher)) // not of a zombie, if nobody reaps here
				return err != nil
			})
		})
	}
}

// startHost starts a host and returns the ids of its server and launcher. The
// host has the mark among its arguments and not in its environment.
func startHost(t *testing.T, host *exec.Cmd) (server, launcher int) {
	t.Helper()
	stdout, theirs := pipe(t)
	stdin, _ := pipe(t)
	host.Stdout, host.Stdin = theirs, stdin
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Process.Kill(); host.Wait() })
	if _, err := fmt.Sscan(readLine(t, stdout), &server, &launcher); err != nil {
		t.Fatal(err)
	}
	return server, launcher
}

// The parent-death signal alone, when nobody adopts what remains.
func TestServerDiesWithItsLauncher(t *testing.T) {
	mark := newMark(t)
	_, launcher := startHost(t, role(t, "host", `exec sleep 1000`, mark))
	wantMarked(t, mark, 1)
	if err := syscall.Kill(launcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantNothingLeft(t, mark)
}

// adopt calls Adopt for the time of one test.
func adopt(t *testing.T) {
	t.Helper()
	if err := Adopt(); err != nil {
		t.Fatal(err)
	}
	if !adopts() {
		t.Fatal("Adopt had no effect")
	}
	t.Cleanup(func() {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestKilledLauncherLeavesNothing(t *testing.T) {
	adopt(t)
	bystander := shell(t, `echo ready; read wait`)
	bystander.line(t)
	own := exec.CommandContext(t.Context(), "/bin/sleep", "1000") // a child that is not this package's
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	defer own.Wait()
	defer own.Process.Kill()
	for name, worker := range workers {
		t.Run(name, func(t *testing.T) {
			mark := newMark(t)
			s := shell(t, `trap '' TERM HUP; `+worker+`
				echo started; while :; do sleep 1; done`, mark)
			s.line(t)
			eventually(t, 5*time.Second, "a worker runs", func() bool { return len(marked(mark)) > 1 })
			if err := s.launcher.Kill(); err != nil {
				t.Fatal(err)
			}
			wait(t, 2*time.Second, "the server has exited", s.Exited())
			wait(t, 2*time.Second, "the tree is gone", s.Gone())
			if left := marked(mark); len(left) > 0 {
				t.Errorf("alive after Gone: %v", left)
			}
			if got := s.Exit(); !got.Lost {
				t.Errorf("got %+v, want Lost", got)
			}
		})
	}
	if closed(bystander.Exited()) || closed(bystander.Gone()) {
		t.Error("another server was swept away too")
	}
	if err := own.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a child of the host's own session was swept away: %v", err)
	}
	if got := zombies(); len(got) > 0 {
		t.Errorf("zombies: %v", got)
	}
}

// Starting while other launchers are lost: no start may be mistaken for a stray.
func TestStartsDuringSweeps(t *testing.T) {
	adopt(t)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop is closed; the test waits for it
		defer close(stopped)
		for !closed(stop) {
			sweepStrays()
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 30 {
		s := shell(t, `setsid sleep 1000 & read go; exit 6`)
		s.stdin.WriteString("\n")
		wait(t, 5*time.Second, "the server has exited", s.Exited())
		if got := s.Exit(); got.Code != 6 {
			t.Fatalf("got %+v, want exit status 6", got)
		}
		wait(t, 5*time.Second, "the tree is gone", s.Gone())
	}
}

func TestManyStartsLeaveNothing(t *testing.T) {
	cycle := func() {
		s := shell(t, `sleep 1000 & setsid sleep 1000 & read wait`)
		s.stdin.Close()
		wait(t, 5*time.Second, "the tree is gone", s.Gone())
		s.stdout.Close()
	}
	cycle()
	fds, goroutines, kids := descriptors(t), runtime.NumGoroutine(), len(children(os.Getpid()))
	for range 200 {
		cycle()
	}
	eventually(t, 2*time.Second, "goroutines are as many as before", func() bool {
		return runtime.NumGoroutine() <= goroutines
	})
	if got := descriptors(t); got > fds {
		t.Errorf("descriptors: %d, then %d", fds, got)
	}
	if got := len(children(os.Getpid())); got > kids {
		t.Errorf("children, zombies included: %d, then %d", kids, got)
	}
}

func TestDeletedBinaryStillStartsServers(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "old")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	host := role(t, "deleted-host")
	host.Path = filepath.Join(dir, "host")
	if err := os.WriteFile(host.Path, self, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := host.Output()
	if err != nil || string(out) != "started\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the host's file is still there")
	}
}

func TestSignalsHaveTheirDefaults(t *testing.T) {
	runtime.LockOSThread() // whose mask the host inherits
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, &before); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.CommandContext(t.Context(), "/bin/bash", "-c",
		`trap '' HUP INT PIPE TERM TSTP TTIN TTOU USR1 CHLD
		 exec -a `+roleName+` "$0" run /bin/cat /proc/self/status`, self)
	out, err := host.Output()
	unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Signals 32 and 33 are libc's own (nptl(7)). A program started by posix_spawn(3)
	// of glibc, as make does it, has them ignored, and no program can change that.
	const libc = 1<<(32-1) | 1<<(33-1)
	for _, set := range []string{"SigBlk", "SigIgn", "SigCgt"} {
		if got := statusField(t, out, set) &^ libc; got != 0 {
			t.Errorf("%s of the server: %016x", set, got)
		}
	}
}

func statusField(t *testing.T, status []byte, name string) uint64 {
	t.Helper()
	_, after, ok := bytes.Cut(status, []byte(name+":"))
	if !ok {
		t.Fatalf("no %s in %q", name, status)
	}
	field := string(bytes.Fields(after)[0])
	value, err := strconv.ParseUint(field, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestLimitsAreThoseTheHostWasStartedWith(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.CommandContext(t.Context(), "/bin/bash", "-c",
		`ulimit -Sn 200; ulimit -Sc unlimited 2>/dev/null; umask 027
		 exec -a `+roleName+` "$0" run /bin/bash -c 'ulimit -Sn; ulimit -Sc; ulimit -Hc; umask'`, self)
	out, err := host.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), "200\n0\n0\n0027\n"; got != want {
		t.Errorf("open files, core, core, umask: got %q, want %q", got, want)
	}
}

func TestTooFewDescriptors(t *testing.T) {
	out, err := role(t, "few-files").Output()
	if err != nil {
		t.Fatalf("%v, after %s", err, out)
	}
	if !strings.Contains(string(out), "too many open files") {
		t.Errorf("no start failed for want of descriptors: %q", out)
	}
}

func TestTooFewProcesses(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become a user with no other process")
	}
	host := role(t, "few-procs")
	host.Path = "/proc/self/exe" // the file itself is where other users can't go
	host.Stderr = nil            // the runtime's reports of launchers without threads
	asUser(host, 54321)
	out, err := host.Output()
	if err != nil {
		t.Fatalf("%v, after %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "resource temporarily unavailable") &&
			!strings.Contains(line, "too few processes") {
			t.Errorf("an error that doesn't say why: %q", line)
		}
	}
	if !strings.Contains(string(out), "resource temporarily unavailable") {
		t.Errorf("no start failed for want of processes: %q", out)
	}
}

func TestLauncherStartedByAPerson(t *testing.T) {
	cmd := role(t)
	cmd.Args = []string{launcherName}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
	if !strings.Contains(stderr.String(), "garra starts this program") {
		t.Errorf("it says %q", stderr.String())
	}
}

func BenchmarkStart(b *testing.B) {
	var pss int64
	for b.Loop() {
		stdin, ours, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		p, err := Start(Spec{Path: "/bin/cat"}, Stdio{Stdin: stdin})
		if err != nil {
			b.Fatal(err)
		}
		stdin.Close()
		pss = max(pss, proportionalSet(b, p.launcher.Pid))
		ours.Close()
		<-p.Gone()
	}
	b.ReportMetric(float64(pss), "launcher-PSS-KiB")
}

// proportionalSet returns a process's proportional set size in KiB.
func proportionalSet(b *testing.B, pid int) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("\nPss:"))
	var kib int64
	if _, err := fmt.Sscan(string(after), &kib); err != nil {
		b.Fatal(err)
	}
	return kib
}
