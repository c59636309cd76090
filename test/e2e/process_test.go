// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A process is one line of the process table (proc(5)).
type process struct {
	pid, parent int
	state       string // Z for a zombie
	started     string // with pid, what tells it from others for ever
	name        string
}

func (p process) String() string { return fmt.Sprintf("%d %s (%s)", p.pid, p.name, p.state) }

// readProcess reads one process; ok is false when it is gone.
func readProcess(pid int) (p process, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name is in parentheses and may hold anything.
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[shut+1:]))
	if open < 0 || len(fields) < 20 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{
		pid: pid, parent: parent, state: fields[0], started: fields[19], name: string(text[open+1 : shut]),
	}, err == nil
}

// allProcesses reads the process table.
func allProcesses() []process {
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	var list []process
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// descendants returns all processes below one.
func descendants(pid int) []process {
	table := allProcesses()
	var list []process
	parents := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if parents[p.parent] && !parents[p.pid] {
				parents[p.pid], grown = true, true
				list = append(list, p)
			}
		}
	}
	return list
}

// zombies returns those that have ended and were not waited for.
func zombies(list []process) []process {
	return slices.DeleteFunc(slices.Clone(list), func(p process) bool { return p.state != "Z" })
}

// alive reports whether the process still runs. One that has ended is a zombie
// until its parent looks, which may be nobody of garra's.
func (p process) alive() bool {
	now, ok := readProcess(p.pid)
	return ok && now.started == p.started && now.state != "Z" && now.state != "X"
}

// kill kills the process, if it is still that one.
func (p process) kill() {
	if p.alive() {
		_ = syscall.Kill(p.pid, syscall.SIGKILL) // gone is as good
	}
}

// survivors returns those that still run.
func survivors(list []process) []process {
	return slices.DeleteFunc(slices.Clone(list), func(p process) bool { return !p.alive() })
}

// environment returns the environment that a process was started with.
func (p process) environment() []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	if err != nil {
		return nil // it is gone, or not ours
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// processesOf returns the processes whose HOME is a folder or in it.
func processesOf(home string) []process {
	var list []process
	for _, p := range allProcesses() {
		if slices.ContainsFunc(p.environment(), func(v string) bool {
			rest, ok := strings.CutPrefix(v, "HOME="+home)
			return ok && (rest == "" || rest[0] == '/')
		}) {
			list = append(list, p)
		}
	}
	return list
}

// A usage is what a process holds of what it could leak.
type usage struct {
	descriptors, threads, residentKB int
}

func usageOf(t testing.TB, pid int) (u usage) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	u.descriptors = len(entries)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		switch name {
		case "Threads":
			u.threads, err = strconv.Atoi(number)
		case "VmRSS":
			u.residentKB, err = strconv.Atoi(number)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return u
}
