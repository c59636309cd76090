// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalTree sends sig to the server's process group and to every descendant of
// the tree's root that is not in the group.
//
// The kernel signals a group in one step, so nothing that is forked in it at
// the same time is missed. The others are signalled from the top down: as long
// as a process's parent hasn't collected it, its id is no other process's, and
// a parent that has been killed collects nothing any more.
func signalTree(root, server int, sig syscall.Signal) {
	group, others := split(descendants(root), server)
	if len(group) > 0 { // else the group's number may be a stranger's by now
		syscall.Kill(-server, sig)
	}
	for _, pid := range others {
		syscall.Kill(pid, sig)
	}
}

// groupLives: whatever is left of the group is a descendant here, and waiting
// tells of all those.
func groupLives(int) bool { return false }

// split sorts processes into those in a process group and those out of it.
func split(pids []int, pgid int) (in, out []int) {
	for _, pid := range pids {
		got, err := unix.Getpgid(pid)
		switch {
		case err != nil: // gone
		case got == pgid:
			in = append(in, pid)
		default:
			out = append(out, pid)
		}
	}
	return in, out
}

// descendants returns the processes below root, parents before their children.
// What is forked or orphaned during the walk may be missed: who must have all
// of them walks again.
func descendants(root int) []int {
	var found []int
	seen := map[int]bool{root: true}
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, child := range children(next[0]) {
			if seen[child] {
				continue
			}
			seen[child] = true
			found = append(found, child)
			next = append(next, child)
		}
	}
	return found
}

// children returns the children of a process, zombies included, or none when
// the process is gone.
func children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // one a thread
	if lists == nil {
		return childrenByParent(pid)
	}
	var found []int
	for _, list := range lists {
		text, _ := os.ReadFile(list) // an error: the thread is gone
		for field := range bytes.FieldsSeq(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// childrenByParent is for kernels that were built without those lists
// (CONFIG_PROC_CHILDREN): it asks every process for its parent.
func childrenByParent(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // gone
		}
		if child, parent := parseStat(text); parent == pid {
			found = append(found, child)
		}
	}
	return found
}

// parseStat returns a process's id and its parent's from /proc/PID/stat, which
// is "PID (NAME) STATE PPID …" with a NAME of the process's own choice
// (proc_pid_stat(5)).
func parseStat(text []byte) (pid, parent int) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return 0, 0
	}
	after := bytes.Fields(text[end+1:])
	if len(after) < 2 {
		return 0, 0
	}
	pid, _ = strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	parent, _ = strconv.Atoi(string(after[1]))
	return pid, parent
}
