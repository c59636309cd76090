// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processes records what the system shows of garra and of all that it runs.
func (g *gateway) processes() {
	g.t.Helper()
	names := map[int]string{g.cmd.Process.Pid: "garra"}
	for _, s := range g.servers() {
		if s.PID != 0 {
			names[s.PID] = s.Name
		}
	}
	family := descendants(g.cmd.Process.Pid)
	if len(family) < 9 {
		g.t.Errorf("garra, four servers and their guardians should run, not %v", family)
	}
	for _, pid := range family {
		name := names[pid]
		if name == "" {
			name = "a helper"
		}
		for _, file := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err != nil {
				g.t.Errorf("reading %s of %s: %v", file, name, err)
			}
			g.add("process of "+name, string(text)+"\n")
		}
	}
}

// descendants returns a process and all below it.
func descendants(root int) []int {
	parents := make(map[int]int)
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue // it is gone
		}
		// The name is in parentheses and may hold anything (proc_pid_stat(5)).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(folder))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	list := []int{root}
	for i := 0; i < len(list); i++ {
		for pid, parent := range parents {
			if parent == list[i] {
				list = append(list, pid)
			}
		}
	}
	return list
}

// abort has garra killed by the signal that asks for a core file, where core files may
// have any size.
func (h *home) abort() {
	h.t.Helper()
	h.configure("127.0.0.1:1")
	of := h.command("serve", "--listen", "127.0.0.1:0")
	args := []string{"-c", `ulimit -c unlimited; exec "$0" "$@"`, h.binary}
	cmd := exec.Command("/bin/sh", append(args, of.Args[1:]...)...)
	cmd.Env, cmd.Dir = append(of.Env, "GOTRACEBACK=crash"), of.Dir
	g := h.start(cmd)
	eventually(h.t, "the server with most secrets is ready", func() bool { return g.server("full").State == "ready" })
	if err := cmd.Process.Signal(syscall.SIGABRT); err != nil {
		h.t.Fatal(err)
	}
	select {
	case <-g.exited:
	case <-time.After(patience):
		h.t.Fatal("garra does not end on SIGABRT")
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGABRT {
		h.t.Errorf("garra ended with %v, not by SIGABRT", cmd.ProcessState)
	}
	if status.CoreDump() {
		h.add("core file", "garra wrote one, with "+h.canaries.value("passphrase"))
	}
	eventually(h.t, "the servers of the gateway that died are gone", func() bool {
		left, _ := filepath.Glob(h.path("run", "garra-*")) // the pattern is good
		return len(left) == 0
	})
}

// files records all files, but for those that the test wrote secrets to, and the vault.
func (h *home) files() {
	h.t.Helper()
	read := 0
	err := filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || h.given[path] {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(h.dir, path) // it is below
		h.add("file "+name, string(text))
		read++
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
	if read < 4 { // the vault, tokens, lock, what was seen of the vault
		h.t.Errorf("only %d files found", read)
	}
}
