// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseHierarchies(t *testing.T) {
	for name, c := range map[string]struct {
		mounts, own string
		want        []hierarchy
	}{
		"version 2": {
			"30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
			"0::/user.slice/a.scope\n",
			[]hierarchy{{v2: true, folder: "/sys/fs/cgroup/user.slice/a.scope"}},
		},
		"both": {
			"31 30 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n" +
				"32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,name=systemd\n" +
				"34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"4:memory:/job/x:y\n1:cpu:/\n0::/\n",
			[]hierarchy{
				{controllers: []string{"rw", "cpu"}, folder: "/sys/fs/cgroup/cpu"},
				{controllers: []string{"rw", "memory"}, folder: "/sys/fs/cgroup/memory/job/x:y"},
				{v2: true, folder: "/sys/fs/cgroup/unified"},
			},
		},
		"a container that sees its own part": {
			"32 30 0:28 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"4:memory:/docker/1/inner\n",
			[]hierarchy{{controllers: []string{"rw", "memory"}, folder: "/sys/fs/cgroup/memory/inner"}},
		},
		"a path of another namespace": {
			"32 30 0:28 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			"4:memory:/elsewhere\n",
			[]hierarchy{{controllers: []string{"rw", "memory"}, folder: "/sys/fs/cgroup/memory"}},
		},
		"nothing": {"1 1 0:1 / / rw - ext4 /dev/vda rw\nnonsense\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := parseHierarchies(c.mounts, c.own)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(hierarchy{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// fakeGroup is a folder with the files of a group of version 2, which the kernel
// makes in every folder and a test has to.
func fakeGroup(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The machines that test this have no memory controller of version 2, so here is what
// is written where.
func TestGroupOfVersion2(t *testing.T) {
	dir := t.TempDir()
	fakeGroup(t, dir, map[string]string{
		"cgroup.controllers": "cpu memory pids\n", "cgroup.subtree_control": "cpu memory pids\n",
	})
	folder := filepath.Join(dir, groupName())
	fakeGroup(t, folder, map[string]string{
		"memory.max": "", "memory.swap.max": "", "memory.oom.group": "", "pids.max": "", "cpu.max": "",
		"memory.events": "oom 1\noom_kill 0\n", "cgroup.procs": "",
	})
	l := &Limits{Memory: 1 << 29, Processes: 40, CPU: 1.5}
	g, failure := makeGroup([]hierarchy{{v2: true, folder: filepath.Join(dir, restName)}}, l)
	if failure != nil {
		t.Fatalf("%+v", failure)
	}
	if g.memoryLayer() != LayerCgroup2 || g.killed() {
		t.Errorf("layer %q, killed %v", g.memoryLayer(), g.killed())
	}
	if failure := g.put(4711); failure != nil {
		t.Fatalf("%+v", failure)
	}
	for name, want := range map[string]string{
		"memory.max": "536870912", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "40",
		"cpu.max": "150000 100000", "cgroup.procs": "4711",
	} {
		if got, _ := os.ReadFile(filepath.Join(folder, name)); string(got) != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	fakeGroup(t, folder, map[string]string{"memory.events": "oom 1\noom_kill 2\n"})
	if !g.killed() {
		t.Error("a kill goes unnoticed")
	}
}

// A controller that is there and doesn't take its limit fails the start.
func TestGroupRefusesItsLimit(t *testing.T) {
	dir := t.TempDir()
	fakeGroup(t, dir, map[string]string{"cgroup.controllers": "memory", "cgroup.subtree_control": "memory"})
	_, failure := makeGroup([]hierarchy{{v2: true, folder: dir}}, &Limits{Memory: megabyte})
	if failure == nil || failure.Op != OpLimit || failure.Errno != syscall.ENOENT {
		t.Errorf("got %+v", failure)
	}
}

// A group in which others have processes, or in which garra may not write, is none.
func TestGroupThatCantBeHad(t *testing.T) {
	dir := t.TempDir()
	fakeGroup(t, dir, map[string]string{"cgroup.controllers": "memory pids"}) // no subtree_control
	g, failure := makeGroup([]hierarchy{{v2: true, folder: dir}}, &Limits{Memory: megabyte, Processes: 5})
	if failure != nil || len(g.all()) > 0 || g.memoryLayer() != "" {
		t.Errorf("got %+v, %+v", g, failure)
	}
}

// needGroups skips where this user can't make control groups of version 1.
func needGroups(t *testing.T) {
	t.Helper()
	g, failure := newGroup(&Limits{Memory: megabyte})
	if failure != nil || g.memoryLayer() == "" {
		t.Skip("no control group of memory can be made here")
	}
	g.remove()
}

func TestGroupEndsWithItsTree(t *testing.T) {
	needGroups(t)
	s := start(t, Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "cat /proc/self/cgroup; echo; read wait"}, Env: withPath(nil),
		Limits: Limits{Memory: testLimit, CPU: 0.5, Processes: 20},
	})
	var within []string
	for line := s.line(t); line != ""; line = s.line(t) {
		if strings.Contains(line, groupPrefix()) {
			within = append(within, strings.Split(line, ":")[1])
		}
	}
	slices.Sort(within)
	if want := []string{"cpu", "memory", "pids"}; !slices.Equal(within, want) {
		t.Errorf("it is in groups of %q, not %q", within, want)
	}
	mine := slices.DeleteFunc(groups(), func(folder string) bool {
		return !strings.Contains(folder, fmt.Sprintf("-%d-", s.launcher.Pid))
	})
	if len(mine) != 3 {
		t.Errorf("its groups are %q", mine)
	}
	s.stdin.Close()
	wait(t, 5*time.Second, "the tree is gone", s.Gone())
	for _, folder := range mine {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", folder, err)
		}
	}
}

// The host of a launcher that was killed removes what that left.
func TestGroupOfAKilledLauncher(t *testing.T) {
	needGroups(t)
	adopt(t)
	s := start(t, Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "setsid sleep 1000 & echo started; read wait"},
		Env: withPath(nil), Limits: Limits{Memory: testLimit},
	})
	s.line(t)
	left := fmt.Sprintf("-%d-", s.launcher.Pid)
	if err := s.launcher.Kill(); err != nil {
		t.Fatal(err)
	}
	wait(t, 5*time.Second, "the tree is gone", s.Gone())
	eventually(t, 5*time.Second, "its group is gone", func() bool {
		sweepGroups()
		return !slices.ContainsFunc(groups(), func(folder string) bool { return strings.Contains(folder, left) })
	})
}

// Others' groups, and those of launchers that run, are left alone.
func TestSweepIsCareful(t *testing.T) {
	dir := t.TempDir()
	prefix := groupPrefix()
	for _, name := range []string{
		groupName(), prefix + "999999999-1", "garra-1-999999999-1", prefix + "nonsense", "other",
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	if _, err := os.Stat(filepath.Join(dir, prefix+"999999999-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the group of a launcher that is gone is still there")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 4 {
		t.Errorf("left are %v", entries)
	}
}
