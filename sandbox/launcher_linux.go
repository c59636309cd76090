// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"math"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// selfExe is the running binary, even when its file was replaced or deleted.
const selfExe = "/proc/self/exe"

// launcherPath returns what to execute for a launcher.
func launcherPath() string {
	if _, err := os.Lstat(selfExe); err == nil {
		return selfExe
	}
	path, _ := os.Executable() // without /proc: the best guess
	return path
}

// serverAttr gives the server a process group of its own, and its death with
// the launcher's.
func serverAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// nameProcess replaces the name "exe" that selfExe leaves in ps(1) and top(1).
// Nothing depends on it, so a kernel without /proc doesn't matter.
func nameProcess() error {
	_ = os.WriteFile("/proc/self/comm", []byte(launcherName), 0)
	return nil
}

// becomeSubreaper makes orphans of the tree children of this process.
func becomeSubreaper() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// clearSignalMask unblocks all signals in this thread, whose mask the server
// gets.
func clearSignalMask() error {
	return unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
}

// closeOnExec marks every descriptor beyond the standard ones, whoever opened
// it: also what garra's own parent let it inherit.
func closeOnExec() error {
	err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // before Linux 5.9 and 5.11
		return closeOnExecEach("/proc/self/fd")
	}
	return err
}

// duplicate makes to a duplicate of from.
func duplicate(from, to int) error { return unix.Dup3(from, to, 0) }

// maxRSSBytes: Linux counts in KiB (getrusage(2)).
func maxRSSBytes(usage *syscall.Rusage) int64 { return int64(usage.Maxrss) * 1024 }
