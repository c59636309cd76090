// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A group is the control groups of one server's tree: one folder in each hierarchy
// that has a controller for one of its limits. A nil group is one without folders.
type group struct {
	folders map[string]string // by controller
	v2      bool              // of the memory controller
}

// newGroup makes a group with limits. A controller that can't be had is left out;
// one that can, and doesn't take its limit, is a failure.
func newGroup(l *Limits) (*group, *failedReport) {
	if l.NoCgroup {
		return nil, nil
	}
	return makeGroup(hierarchies(), l)
}

func makeGroup(all []hierarchy, l *Limits) (*group, *failedReport) {
	g := &group{folders: make(map[string]string)}
	for _, want := range []struct {
		controller string
		wanted     bool
		set        func(folder string, v2 bool) error
	}{
		{memoryController, l.Memory > 0, l.limitMemory},
		{pidsController, l.Processes > 0, l.limitProcesses},
		{cpuController, l.CPU > 0, l.limitCPU},
	} {
		h, ok := find(all, want.controller)
		if !want.wanted || !ok {
			continue
		}
		folder, err := g.join(&h, want.controller)
		if err != nil {
			continue // garra may not make one here
		}
		if want.controller == memoryController {
			g.v2 = h.v2
		}
		if err := want.set(folder, h.v2); err != nil {
			g.remove()
			return nil, newFailedReport(OpLimit, "limiting the control group's "+want.controller, err)
		}
	}
	return g, nil
}

// join makes the folder of a controller, which in version 2 is that of all.
func (g *group) join(h *hierarchy, controller string) (folder string, err error) {
	if err := h.enable(controller); err != nil {
		return "", err
	}
	sweep(h.base())
	folder = filepath.Join(h.base(), groupName())
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	g.folders[controller] = folder
	return folder, nil
}

// limitMemory limits what a group may use, without swap where that is counted.
func (l *Limits) limitMemory(folder string, v2 bool) error {
	limit := strconv.FormatInt(l.Memory, 10)
	if !v2 {
		if err := writeControl(filepath.Join(folder, "memory.limit_in_bytes"), limit); err != nil {
			return err
		}
		return optional(writeControl(filepath.Join(folder, "memory.memsw.limit_in_bytes"), limit))
	}
	if err := writeControl(filepath.Join(folder, "memory.max"), limit); err != nil {
		return err
	}
	return errors.Join(
		optional(writeControl(filepath.Join(folder, "memory.swap.max"), "0")),
		optional(writeControl(filepath.Join(folder, "memory.oom.group"), "1")),
	)
}

// optional makes light of a file that kernels have or not.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (l *Limits) limitProcesses(folder string, _ bool) error {
	return writeControl(filepath.Join(folder, "pids.max"), strconv.Itoa(l.Processes))
}

// limitCPU gives the group its share of each tenth of a second, the kernel's own period.
func (l *Limits) limitCPU(folder string, v2 bool) error {
	const period = 100_000 // microseconds
	quota := strconv.Itoa(max(1000, int(math.Round(l.CPU*period))))
	if v2 {
		return writeControl(filepath.Join(folder, "cpu.max"), fmt.Sprintf("%s %d", quota, period))
	}
	if err := writeControl(filepath.Join(folder, "cpu.cfs_period_us"), strconv.Itoa(period)); err != nil {
		return err
	}
	return writeControl(filepath.Join(folder, "cpu.cfs_quota_us"), quota)
}

// has reports whether a controller limits the group.
func (g *group) has(controller string) bool { return g != nil && g.folders[controller] != "" }

// memoryLayer is what the memory controller is called, empty without one.
func (g *group) memoryLayer() Layer {
	switch {
	case !g.has(memoryController):
		return ""
	case g.v2:
		return LayerCgroup2
	}
	return LayerCgroup1
}

// put puts a process, and what it starts from then on, into the group.
func (g *group) put(pid int) *failedReport {
	for _, folder := range g.all() {
		if err := writeControl(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return newFailedReport(OpLimit, "entering the control group", err)
		}
	}
	return nil
}

// all returns the folders, each once.
func (g *group) all() (list []string) {
	if g == nil {
		return nil
	}
	for _, folder := range g.folders {
		if !slices.Contains(list, folder) {
			list = append(list, folder)
		}
	}
	return list
}

// killed reports whether the kernel killed a process since the group had no memory.
func (g *group) killed() bool {
	if !g.has(memoryController) {
		return false
	}
	name := "memory.oom_control"
	if g.v2 {
		name = "memory.events"
	}
	text, _ := os.ReadFile(filepath.Join(g.folders[memoryController], name))
	for line := range bytes.Lines(text) {
		if count, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("oom_kill ")); ok {
			return string(count) != "0"
		}
	}
	return false
}

// remove removes the folders of a group whose processes are gone. The kernel may need
// a moment to notice that they are; what stays is swept by the next start.
func (g *group) remove() {
	for _, folder := range g.all() {
		for delay := firstRound; delay < lastRound; delay *= 2 {
			if err := os.Remove(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			time.Sleep(delay)
		}
	}
}

// groupName names this launcher's groups, so that another garra can tell whether it
// still runs: its process id, when that began, and in which namespace it is one.
func groupName() string {
	return fmt.Sprintf("%s%d-%d", groupPrefix(), os.Getpid(), startTime(os.Getpid()))
}

func groupPrefix() string {
	var info syscall.Stat_t
	_ = syscall.Stat("/proc/self/ns/pid", &info) // without namespaces there is one
	return fmt.Sprintf("garra-%d-", info.Ino)
}

// sweepGroups removes what launchers left that were killed.
func sweepGroups() {
	for _, h := range hierarchies() {
		sweep(h.base())
	}
}

// sweep kills what is left in the groups of launchers that are gone, and removes them.
func sweep(folder string) {
	entries, _ := os.ReadDir(folder)
	prefix := groupPrefix()
	for _, entry := range entries {
		owner, mine := strings.CutPrefix(entry.Name(), prefix)
		var pid int
		var began uint64
		if n, _ := fmt.Sscanf(owner, "%d-%d", &pid, &began); !mine || n != 2 || startTime(pid) == began {
			continue
		}
		left := filepath.Join(folder, entry.Name())
		for _, stray := range words(filepath.Join(left, "cgroup.procs")) {
			if pid, err := strconv.Atoi(stray); err == nil && pid > 0 {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = os.Remove(left) // it is busy while they die; the next sweep gets it
	}
}

// startTime returns when a process began, in ticks of the clock since the machine
// did; 0 when it is gone (proc_pid_stat(5)).
func startTime(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	const field = 22 - 3 // the name, which is field 2, is cut off
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= field {
		return 0
	}
	began, _ := strconv.ParseUint(fields[field], 10, 64)
	return began
}
