// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of whatever outlives a launcher, so that
// it can be killed when a launcher was (prctl(2), PR_SET_CHILD_SUBREAPER). The
// host calls it once, before its first Start.
//
// After it, a child of this process in another session than this process's own
// is taken for a stray when a launcher is lost. Children that are not started
// by this package must stay in the session (no Setsid).
func Adopt() error {
	if err := becomeSubreaper(); err != nil {
		return fmt.Errorf("adopting what outlives a launcher: %w", err)
	}
	return nil
}

// adopts reports whether Adopt was called. Process 1 adopts without it, but may
// be the parent of strangers.
func adopts() bool {
	var set int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&set)), 0, 0, 0)
	return err == nil && set != 0
}

// sweepStrays kills what remains of the tree of a launcher that was killed, and
// waits for it. Launchers may run and start during that.
func sweepStrays() {
	if !adopts() {
		return
	}
	for delay := firstRound; ; delay = min(2*delay, lastRound) {
		found := strays()
		if len(found) == 0 {
			return
		}
		for _, pid := range found {
			tree := append([]int{pid}, descendants(pid)...)
			for _, pid := range tree {
				syscall.Kill(pid, syscall.SIGKILL)
			}
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(delay)
	}
}

// strays returns the children of this process that left its session without
// being launchers. Every descendant of a launcher has, since the launcher itself
// did, and no process can come back.
//
// A launcher that has just died looks like a stray. It may then be collected
// here instead of by the goroutine that watches it, which knows by the socket's
// end what it has to know.
func strays() []int {
	session, err := unix.Getsid(0)
	if err != nil {
		return nil
	}
	// A child that is being forked becomes a launcher by its exec, and until
	// then its parent holds this lock.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	var found []int
	for _, pid := range children(os.Getpid()) {
		if sid, err := unix.Getsid(pid); err != nil || sid == session || isLauncher(pid) {
			continue
		}
		found = append(found, pid)
	}
	return found
}

// isLauncher reports whether a live process is this binary under the launcher's
// name, or about to be: exec lets the parent go on before the arguments are in
// their place.
func isLauncher(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(line) > 0 && string(line) != launcherName+"\x00" {
		return false
	}
	theirs, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	ours, err := os.Stat(selfExe)
	return err == nil && os.SameFile(ours, theirs)
}
