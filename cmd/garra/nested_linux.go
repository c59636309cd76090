// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// maxAncestors bounds how far up the processes are looked at.
const maxAncestors = 256

// nesting counts the gateways among the ancestors of this process: those that run
// the same file as `garra serve` or `garra stdio` (proc_pid_exe(5)).
func nesting() (depth int) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return 0 // nothing can be said
	}
	pid := os.Getppid()
	for range maxAncestors {
		if pid <= 1 {
			return depth
		}
		exe, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
		if err == nil && os.SameFile(self, exe) && isGateway(pid) {
			depth++
		}
		if pid, err = parentOf(pid); err != nil {
			return depth
		}
	}
	return depth
}

// isGateway reports whether a process of garra is one that runs servers.
func isGateway(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	for _, arg := range bytes.Split(line, []byte{0})[1:] {
		if string(arg) == "stdio" || string(arg) == "serve" {
			return true
		}
	}
	return false
}

// parentOf reads a process's parent (proc_pid_stat(5): the fourth field, after a
// name in parentheses that may hold anything).
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d: no parent in its stat", pid)
	}
	return strconv.Atoi(string(fields[1]))
}
