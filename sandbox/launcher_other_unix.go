// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package sandbox

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// launcherPath returns what to execute for a launcher.
func launcherPath() string {
	path, _ := os.Executable() // an empty path fails to execute, and says so
	return path
}

// serverAttr gives the server a process group of its own.
func serverAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// nameProcess: ps(1) shows argv[0] here.
func nameProcess() error { return nil }

// becomeSubreaper: there are none here, process 1 adopts orphans.
func becomeSubreaper() error { return nil }

// clearSignalMask: the server gets the mask that the host was started with.
func clearSignalMask() error { return nil }

// closeOnExec marks every descriptor beyond the standard ones, whoever opened it.
func closeOnExec() error { return closeOnExecEach("/dev/fd") }

// duplicate makes to a duplicate of from.
func duplicate(from, to int) error { return unix.Dup2(from, to) }

// maxRSSBytes: macOS counts in bytes, the others in KiB (getrusage(2)).
func maxRSSBytes(usage *syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) * 1024
}

// signalTree sends sig to the server's process group, which is what can be
// found of the tree here.
func signalTree(_, server int, sig syscall.Signal) { syscall.Kill(-server, sig) }

// initName: there are no namespaces here.
const initName = "garra-init"

func runInit() error { return syscall.ENOSYS }

func (*launcher) startInit(*confinement, int) (stage int, failure *failedReport) {
	return 0, newFailedReport(OpConfine, "making namespaces", syscall.ENOSYS)
}

func (*launcher) endInit() {}

// groupLives reports whether the server's process group still has members. They
// are process 1's children once the server is gone, so waiting doesn't tell.
func groupLives(server int) bool { return syscall.Kill(-server, 0) == nil }

// Adopt does nothing on this system: see the package comment.
func Adopt() error { return nil }

// sweepStrays: nothing is adopted here.
func sweepStrays() {}
