// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/garraia/garra/internal/filelock"
)

// addKillParts adds the part that is killed.
func addKillParts(all map[string]func([]string) error) { all["killed"] = updateBetweenSignals }

// updateBetweenSignals is the part of a process that changes a vault once. It
// sends itself SIGUSR1 before and SIGUSR2 after, which its tracer sees. Its
// arguments are the vault and the record.
func updateBetweenSignals(args []string) error {
	p, err := Seal([]byte("correct horse"))
	if err != nil {
		return err
	}
	v, err := Open(Options{Path: args[0], Record: args[1], WorkFactor: 1}, Passphrase(p))
	if err != nil {
		return err
	}
	value, err := Seal([]byte("new"))
	if err != nil {
		return err
	}
	if err := unix.Kill(os.Getpid(), unix.SIGUSR1); err != nil {
		return err
	}
	err = v.Update(func(e *Edit) error { return e.Set("a", value) })
	return errors.Join(err, unix.Kill(os.Getpid(), unix.SIGUSR2))
}

// fileCalls are the system calls by which a write can change what is on the disk,
// or depends on it.
func fileCalls() []uint64 {
	return []uint64{
		unix.SYS_OPENAT, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_PWRITE64, unix.SYS_CLOSE, unix.SYS_FLOCK,
		unix.SYS_FSYNC, unix.SYS_FCHMOD, unix.SYS_FCHOWN, unix.SYS_FTRUNCATE, unix.SYS_GETDENTS64,
		unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT,
	}
}

// A tracer follows all threads of a process by ptrace(2). Its methods are for the
// thread that started the process.
type tracer struct {
	within bool     // between the two signals
	calls  []uint64 // the file calls that were begun in between
	failed bool     // the process
}

// killAt runs the part that is killed, and kills it when it is about to make its
// nth file call between the signals. It returns the calls that were begun.
func killAt(t *testing.T, o Options, n int) (killed bool, calls []uint64) {
	t.Helper()
	runtime.LockOSThread() // only the thread that starts a process traces it
	defer runtime.UnlockOSThread()
	cmd := child(t, "killed")
	process, err := os.StartProcess(cmd.Path, append(cmd.Args, o.Path, o.Record), &os.ProcAttr{
		Env: append(cmd.Env, "GOMAXPROCS=1"), Files: []*os.File{nil, os.Stdout, os.Stderr},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if errors.Is(err, syscall.EPERM) {
		t.Skip("ptrace(2) is not allowed")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Release() }() // it is waited for below
	tr := &tracer{}
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-process.Pid, &status, unix.WALL, nil)
		if errors.Is(err, unix.ECHILD) { // every thread has ended
			if tr.failed && !killed {
				t.Fatal("the process failed")
			}
			return killed, tr.calls
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
		if err != nil || killed {
			continue
		}
		signal := tr.stopped(tid, status)
		if killed = len(tr.calls) == n; killed {
			err = unix.Kill(process.Pid, unix.SIGKILL)
		} else if status.Stopped() {
			err = unix.PtraceSyscall(tid, signal)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatal(err)
		}
	}
}

// stopped notes why a thread stopped or ended, and returns the signal that it is
// to get.
func (tr *tracer) stopped(tid int, status unix.WaitStatus) (signal int) {
	switch stop := status.StopSignal(); stop {
	case unix.SIGTRAP | 0x80: // a system call, as the options say
		if call, ok := entered(tid); ok && tr.within && slices.Contains(fileCalls(), call) {
			tr.calls = append(tr.calls, call)
		}
	case unix.SIGUSR1:
		tr.within = true
	case unix.SIGUSR2:
		tr.within = false
	case unix.SIGTRAP, unix.SIGSTOP: // execve, or a thread that is new
		const options = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
		_ = unix.PtraceSetOptions(tid, options) // a thread that was killed has gone
	default:
		tr.failed = tr.failed || status.Exited() && status.ExitStatus() != 0 || status.Signaled()
		return max(int(stop), 0)
	}
	return 0
}

// entered returns the system call that a thread is about to make.
func entered(tid int) (call uint64, ok bool) {
	var info struct { // struct ptrace_syscall_info
		op   uint8
		_    [3]uint8
		arch uint32
		_    [2]uint64
		call uint64
		_    [8]uint64
	}
	const getSyscallInfo, atEntry = 0x420e, 1
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(tid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	return info.call, errno == 0 && info.op == atEntry
}

// Wherever a process is killed while it writes, the vault is the old one or the new
// one, nobody's lock is left, and the next write removes what was left.
func TestKilledAtAnyPoint(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), map[string]string{"a": "old"})
	outcomes := make(map[string]int)
	var calls []uint64
	for n := 1; ; n++ {
		killed, begun := killAt(t, o, n)
		unlock, err := filelock.Try(o.Path + ".lock")
		if err != nil {
			t.Fatalf("killed at call %d: %v", n, err)
		}
		unlock()
		got := values(t, open(t, o, phrase(t)))["a"]
		outcomes[got]++
		set(t, v, map[string]string{"a": "old", "n": string(rune(n))})
		wantFiles(t, filepath.Dir(o.Path), "vault.age", "vault.age.lock")
		if !killed {
			calls = begun
			if got != "new" {
				t.Errorf("a whole update leaves %q", got)
			}
			break
		}
	}
	t.Logf("killed at each of %d calls: %v", len(calls), outcomes)
	for _, call := range []uint64{unix.SYS_FLOCK, unix.SYS_WRITE, unix.SYS_FSYNC, unix.SYS_RENAMEAT} {
		if !slices.Contains(calls, call) {
			t.Errorf("system call %d was not seen: %v", call, calls)
		}
	}
	if outcomes["old"] == 0 || outcomes["new"] < 2 || len(outcomes) != 2 {
		t.Errorf("outcomes: %v", outcomes)
	}
}

// wantFiles fails unless a folder holds these files and no others.
func wantFiles(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}
