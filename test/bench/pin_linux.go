// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// canPin reports whether processes can be kept on different cores.
func canPin() bool { return runtime.NumCPU() > 1 }

// pinProcess keeps all threads of a process on one core.
func pinProcess(pid, core int) error {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return fmt.Errorf("reading threads: %w", err)
	}
	var set unix.CPUSet
	set.Set(core)
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("keeping process %d on core %d: %w", pid, core, err)
		}
	}
	return nil
}

// pinned calls do in a thread that is kept on one core meanwhile.
func pinned(core int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("reading where the thread may run: %w", err)
	}
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("keeping a thread on core %d: %w", core, err)
	}
	defer unix.SchedSetaffinity(0, &before)
	return do()
}

// block makes reads of a file wait in the thread that makes them.
func block(file *os.File) error {
	if err := unix.SetNonblock(int(file.Fd()), false); err != nil {
		return fmt.Errorf("making a pipe block: %w", err)
	}
	return nil
}
