// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// limited is what is shown of a server's memory.
type limited struct {
	State    string
	Reason   string `json:"last_reason"`
	Error    string `json:"last_error"`
	Restarts int
	Tools    []struct{ Name string }
	Memory   memoryShown
}

type memoryShown struct {
	Limit      *int     `json:"limit_mb"`
	Used       *int     `json:"used_mb"`
	EnforcedBy []string `json:"enforced_by"`
}

// inspectLimited inspects a server, which need not be ready.
func inspectLimited(h *rig.Home, name string) (shown limited) {
	h.T.Helper()
	out := rig.Run(h.T, h.Command("mcp", "inspect", name, "--json"))
	if err := json.Unmarshal([]byte(out.Stdout), &shown); err != nil {
		h.T.Fatalf("inspecting %s: %v in %s%s", name, err, out.Stdout, out.Stderr)
	}
	return shown
}

// TestNpxUnderALimit runs the reference servers under a limit that a limit of their
// address space would not let them start with.
func TestNpxUnderALimit(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	entries := reference(t, h)
	for name, e := range entries {
		entries[name] = e.With("memoryLimitMb", 512)
	}
	h.Configure(entries)
	g := h.Serve()
	for name := range entries {
		g.Ready(name)
	}
	for name := range entries {
		rig.Eventually(t, rig.Patience, name+" has listed its tools", func() bool {
			return len(inspectLimited(h, name).Tools) > 0
		})
		checkLimited(t, inspectLimited(h, name), 512)
	}
	c := g.Connect("")
	if text := c.Text("everything__echo", `{"message":"hi"}`); text != "Echo: hi" {
		t.Errorf("echo says %q", text)
	}
	for name, text := range map[string]string{
		"memory__read_graph":         `{}`,
		"filesystem__list_directory": `{"path":"` + h.Path("work") + `"}`,
		"sequential-thinking__sequentialthinking": `{"thought":"a","thoughtNumber":1,"totalThoughts":1,` +
			`"nextThoughtNeeded":false}`,
	} {
		c.Text(name, text) // fails on an error
	}
	for name := range entries {
		if n := inspectLimited(h, name).Restarts; n != 0 {
			t.Errorf("%s was restarted %d times", name, n)
		}
	}
}

// checkLimited looks at what is shown of a server that is well below its limit.
func checkLimited(t *testing.T, s limited, limit int) {
	t.Helper()
	m := s.Memory
	switch {
	case m.Limit == nil || *m.Limit != limit, m.Used == nil || *m.Used < 1 || *m.Used >= limit:
		t.Errorf("shown is %+v", m)
	case !slices.Contains(m.EnforcedBy, "sampler"), !slices.Contains(m.EnforcedBy, "rlimit_data"):
		t.Errorf("enforced by %q", m.EnforcedBy)
	default:
		t.Logf("uses %d of %d MB, enforced by %q", *m.Used, *m.Limit, m.EnforcedBy)
	}
}

// TestLeakInAGateway lets a server leak beside another.
func TestLeakInAGateway(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{
		"leaky": rig.Misbehaving().With("memoryLimitMb", 256).With("maxRestarts", 0), "neighbour": rig.Misbehaving(),
	})
	g := h.Serve()
	g.Ready("leaky", "neighbour")
	neighbour := g.Server("neighbour").PID
	c := g.Connect("leaky")
	rig.Eventually(t, rig.Patience, "the leak ends the server", func() bool {
		if g.Server("leaky").State != "ready" {
			return true
		}
		c.Call("alloc", `{"mb":16}`) // of the last one the result is an error
		return false
	})
	rig.Eventually(t, rig.Promptly, "it is parked", func() bool { return g.Server("leaky").State == "parked" })
	s := inspectLimited(h, "leaky")
	if s.Reason != "memory" || !strings.Contains(s.Error, "set memoryLimitMb to") {
		t.Errorf("%q: %s", s.Reason, s.Error)
	}
	if now := g.Server("neighbour").PID; now != neighbour {
		t.Errorf("the neighbour went from process %d to %d", neighbour, now)
	}
}

// TestKilledGatewayLeavesNoGroups kills garra: its servers' control groups go with them.
func TestKilledGatewayLeavesNoGroups(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"limited": rig.Misbehaving().With("memoryLimitMb", 512)})
	g := h.Serve()
	g.Ready("limited")
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", g.Server("limited").PID))
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), ":memory:")
	folder, _, _ := strings.Cut(after, "\n")
	if !ok || !strings.Contains(folder, "/garra-") {
		t.Skip("garra can make no control groups here")
	}
	g.Signal(syscall.SIGKILL)
	rig.Eventually(t, rig.Promptly, "the group is gone", func() bool {
		_, err := os.Stat("/sys/fs/cgroup/memory" + folder)
		return errors.Is(err, fs.ErrNotExist)
	})
}
