// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A Process is one line of the process table (proc(5)).
type Process struct {
	PID, parent int
	state       string // Z for a zombie
	started     string // with pid, what tells it from others for ever
	Name        string
}

// String is for messages: the id, the name and the state.
func (p Process) String() string { return fmt.Sprintf("%d %s (%s)", p.PID, p.Name, p.state) }

// readProcess reads one process; ok is false when it is gone.
func readProcess(pid int) (p Process, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, false
	}
	// The name is in parentheses and may hold anything.
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[shut+1:]))
	if open < 0 || len(fields) < 20 {
		return Process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return Process{
		PID: pid, parent: parent, state: fields[0], started: fields[19], Name: string(text[open+1 : shut]),
	}, err == nil
}

// allProcesses reads the process table.
func allProcesses() []Process {
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	var list []Process
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

// Descendants returns all processes below one.
func Descendants(pid int) []Process {
	table := allProcesses()
	var list []Process
	parents := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, p := range table {
			if parents[p.parent] && !parents[p.PID] {
				parents[p.PID], grown = true, true
				list = append(list, p)
			}
		}
	}
	return list
}

// Zombies returns those that have ended and were not waited for.
func Zombies(list []Process) []Process {
	return slices.DeleteFunc(slices.Clone(list), func(p Process) bool { return p.state != "Z" })
}

// Alive reports whether the process still runs. One that has ended is a zombie
// until its parent looks, which may be nobody of garra's.
func (p Process) Alive() bool {
	now, ok := readProcess(p.PID)
	return ok && now.started == p.started && now.state != "Z" && now.state != "X"
}

// Kill kills the process, if it is still that one.
func (p Process) Kill() {
	if p.Alive() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // gone is as good
	}
}

// Survivors returns those that still run.
func Survivors(list []Process) []Process {
	return slices.DeleteFunc(slices.Clone(list), func(p Process) bool { return !p.Alive() })
}

// Environment returns the environment that a process was started with.
func (p Process) Environment() []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
	if err != nil {
		return nil // it is gone, or not ours
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Executing returns the processes whose program is a file.
func Executing(file string) []Process {
	return slices.DeleteFunc(allProcesses(), func(p Process) bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
		return err != nil || program != file
	})
}

// Using returns the processes that have a file of a folder open, or are in it.
func Using(folder string) []Process {
	return slices.DeleteFunc(allProcesses(), func(p Process) bool {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID)) // the pattern is good
		return !slices.ContainsFunc(append(links, fmt.Sprintf("/proc/%d/cwd", p.PID)), func(link string) bool {
			target, err := os.Readlink(link)
			return err == nil && (target == folder || strings.HasPrefix(target, folder+"/"))
		})
	})
}

// ProcessesOf returns the processes whose HOME is a folder or in it.
func ProcessesOf(home string) []Process {
	var list []Process
	for _, p := range allProcesses() {
		if slices.ContainsFunc(p.Environment(), func(v string) bool {
			rest, ok := strings.CutPrefix(v, "HOME="+home)
			return ok && (rest == "" || rest[0] == '/')
		}) {
			list = append(list, p)
		}
	}
	return list
}
