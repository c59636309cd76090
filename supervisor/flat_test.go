// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/garraia/garra/source"
)

// Usage is what this process holds. Tests that compare it run alone.
type usage struct{ descriptors, goroutines, children, zombies int }

func usageNow(t *testing.T) usage {
	t.Helper()
	u := usage{goroutines: runtime.NumGoroutine()}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	u.descriptors = len(files)
	for pid, state := range childrenOf(t, os.Getpid()) {
		u.children++
		if state == "Z" {
			u.zombies++
		}
		for _, state := range childrenOf(t, pid) {
			u.children++
			if state == "Z" {
				u.zombies++
			}
		}
	}
	return u
}

// childrenOf returns the states of a process's children, by their ids.
func childrenOf(t *testing.T, parent int) map[int]string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]string)
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest) // state, parent, …
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found[pid] = fields[0]
		}
	}
	return found
}

// flat makes sure that usage comes back to what it was.
func flat(t *testing.T, before usage) {
	t.Helper()
	var now usage
	eventually(t, fmt.Sprintf("usage is %+v again", before), func() bool {
		now = usageNow(t)
		return now.descriptors <= before.descriptors && now.goroutines <= before.goroutines &&
			now.children <= before.children && now.zombies == 0
	})
}

// Restarting two hundred times, by hand and after kills, leaves nothing behind.
func TestRestartsLeaveNothingBehind(t *testing.T) {
	r := newRig(t)
	names := []string{"a", "b", "c", "d"}
	r.apply(map[string]fields{
		"a": misbehaving(), "b": misbehaving("--setsid-worker", filepath.Join(r.dir, "pid")),
		"c": misbehaving(), "d": misbehaving(),
	})
	r.ready(names...)
	before := usageNow(t)
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			s := r.Server(name)
			for i := range 50 {
				if i%2 == 0 {
					kill(t, s.Status().PID)
				}
				if err := s.Restart(t.Context()); err != nil {
					t.Errorf("restart %d of %s: %v", i, name, err)
				}
			}
		})
	}
	all.Wait()
	flat(t, before)
	for _, name := range names {
		if got := use(t, r.Server(name), "echo", args{"text": name}); got != name {
			t.Errorf("%q", got)
		}
	}
}

// Neither do starts that fail, of whatever kind.
func TestFailedStartsLeaveNothingBehind(t *testing.T) {
	r := newRig(t)
	before := usageNow(t)
	servers := map[string]fields{
		"silent":  misbehaving("--never-init").With("timeoutSecs", 0.05),
		"exits":   misbehaving("--exit-at-start"),
		"missing": {"command": "no-such-command-anywhere"},
		"worker":  misbehaving("--fork-worker", filepath.Join(r.dir, "pid"), "--protocol", "1999-01-01"),
	}
	for name := range servers {
		servers[name] = servers[name].With("maxRestarts", 0)
	}
	r.apply(servers)
	var all sync.WaitGroup
	for name := range servers {
		all.Go(func() {
			for range 20 {
				if err := r.Server(name).Restart(t.Context()); err == nil {
					t.Errorf("%s started", name)
				}
			}
		})
	}
	all.Wait()
	for name := range servers {
		if got := r.Server(name).Status(); got.State != source.Parked && got.State != source.Failed {
			t.Errorf("%s is %s", name, got.State)
		}
	}
	before.goroutines += len(servers) // their owners
	flat(t, before)
}

// Nor do servers that come and go.
func TestRemovedServersLeaveNothingBehind(t *testing.T) {
	r := newRig(t)
	before := usageNow(t)
	for i := range 15 {
		name := fmt.Sprintf("s%d", i%3)
		r.apply(map[string]fields{name: misbehaving(), "other": misbehaving("--banner", strconv.Itoa(i))})
		r.ready(name, "other")
	}
	r.apply(nil)
	flat(t, before)
	if names := r.Names(); len(names) != 0 {
		t.Errorf("%q", names)
	}
}
