// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The controllers that limits need (cgroups(7)).
const (
	memoryController = "memory"
	pidsController   = "pids"
	cpuController    = "cpu"
)

// A hierarchy is one tree of control groups that is mounted, and where in it this
// process is.
type hierarchy struct {
	v2          bool
	controllers []string // of version 1; of version 2, its files tell
	folder      string   // of this process's own group
}

// hierarchies returns what is mounted for this process; none without /proc.
func hierarchies() []hierarchy {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	return parseHierarchies(string(mounts), string(own))
}

// parseHierarchies reads the texts of /proc/PID/mountinfo (proc_pid_mountinfo(5)) and
// /proc/PID/cgroup (cgroups(7)).
func parseHierarchies(mounts, own string) (list []hierarchy) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			continue
		}
		h := hierarchy{v2: right[0] == "cgroup2"}
		if !h.v2 && right[0] != "cgroup" {
			continue
		}
		if !h.v2 {
			h.controllers = strings.Split(right[2], ",")
		}
		path, ok := ownPath(own, &h)
		if !ok {
			continue
		}
		root, mount := left[3], left[4]
		// A path that isn't below what is mounted was written for another
		// namespace; the mount's top is this process's group then.
		below := strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))
		if root != "/" && below == path {
			below = ""
		}
		h.folder = filepath.Join(mount, below)
		list = append(list, h)
	}
	return list
}

// ownPath returns the path of this process's group in a hierarchy, whose line in
// /proc/PID/cgroup is NUMBER:CONTROLLERS:PATH, without controllers for version 2.
func ownPath(own string, h *hierarchy) (path string, ok bool) {
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if h.v2 && parts[1] == "" {
			return parts[2], true
		}
		if !h.v2 && parts[1] != "" && slices.Contains(h.controllers, strings.Split(parts[1], ",")[0]) {
			return parts[2], true
		}
	}
	return "", false
}

// find returns the hierarchy that has a controller, and whether there is one.
func find(all []hierarchy, controller string) (hierarchy, bool) {
	for _, h := range all {
		if !h.v2 && slices.Contains(h.controllers, controller) || h.v2 && h.offers(controller) {
			return h, true
		}
	}
	return hierarchy{}, false
}

// offers reports whether a controller of version 2 can be had in this process's group.
func (h *hierarchy) offers(controller string) bool {
	return slices.Contains(words(filepath.Join(h.base(), "cgroup.controllers")), controller)
}

// restName is the group that the processes of a group are moved to, since in
// version 2 a group has either processes or limited groups below it.
const restName = "garra-rest"

// base is the folder in which groups of servers are made.
func (h *hierarchy) base() string {
	if h.v2 && filepath.Base(h.folder) == restName {
		return filepath.Dir(h.folder)
	}
	return h.folder
}

// enable has groups below base get a controller of version 2 (Linux's
// Documentation/admin-guide/cgroup-v2.rst, "Enabling and Disabling"). An error
// means that it can't be had.
func (h *hierarchy) enable(controller string) error {
	if !h.v2 {
		return nil
	}
	control := filepath.Join(h.base(), "cgroup.subtree_control")
	if slices.Contains(words(control), controller) {
		return nil
	}
	if err := writeControl(control, "+"+controller); err == nil {
		return nil
	}
	if err := h.makeRoom(); err != nil {
		return err
	}
	return writeControl(control, "+"+controller)
}

// makeRoom moves garra's processes out of the group. Others are not garra's to move:
// while there are any, writing subtree_control fails.
func (h *hierarchy) makeRoom() error {
	rest := filepath.Join(h.base(), restName)
	if err := os.Mkdir(rest, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	for _, pid := range words(filepath.Join(h.base(), "cgroup.procs")) {
		if isGarra(pid) {
			_ = writeControl(filepath.Join(rest, "cgroup.procs"), pid) // subtree_control will tell
		}
	}
	return nil
}

// isGarra reports whether a process runs this binary.
func isGarra(pid string) bool {
	theirs, err := os.Stat("/proc/" + pid + "/exe")
	if err != nil {
		return false
	}
	ours, err := os.Stat(selfExe)
	return err == nil && os.SameFile(ours, theirs)
}

// words returns the words of a file, none when it can't be read.
func words(file string) []string {
	text, _ := os.ReadFile(file)
	return strings.Fields(string(text))
}

// writeControl writes to a file of a control group, which is there.
func writeControl(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}
