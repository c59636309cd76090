// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

func TestListFollowsAllPagesAndHasOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--tools", "300", "--page-size", "8"))
	c := r.connect("", `{}`)
	names := c.names()
	for _, want := range []string{"a__echo", "a__tool_1", "a__tool_300"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing among %d tools", want, len(names))
		}
	}
	if m := c.request("tools/list", `{}`); strings.Contains(string(m.Result), "nextCursor") {
		t.Error("the list of all servers has a second page")
	}
	if m := c.request("tools/list", `{"cursor":"x"}`); m.Error == nil {
		t.Error("a cursor that nobody gave is accepted")
	}
}

func TestEndlessCursorIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--endless-cursor"))
	if c := r.connect("", `{}`); !slices.Contains(c.names(), "a__echo") {
		t.Error("the tools that came are lost")
	}
	if !r.warned("more than") {
		t.Errorf("nobody was told: %v", r.warnings)
	}
}

func TestBadSchemasLeaveOutTheirToolsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--bad-schemas"))
	all, one := r.connect("", `{}`), r.connect("a", `{}`)
	names := all.names()
	if !slices.Contains(names, "a__echo") {
		t.Fatalf("good tools are gone: %v", names)
	}
	for _, bad := range []string{"bad_no_schema", "bad_null_schema", "bad_root_string", "bad_required_null"} {
		if slices.Contains(names, "a__"+bad) || slices.Contains(one.names(), bad) {
			t.Errorf("%s is listed", bad)
		}
		if m := all.request("tools/call", callParams("a__"+bad, "{}")); m.Error == nil {
			t.Errorf("%s can be called although it is not listed", bad)
		}
	}
	if !r.warned("is left out") {
		t.Error("nobody was told")
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "a__bad") {
			continue
		}
		if m := all.request("tools/call", callParams(name, "{}")); m.Error != nil {
			t.Errorf("%s is listed and can't be called: %s", name, m.Error)
		}
	}
}

func TestEveryListedNameCanBeCalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a.b", "--long-names"), entry(strings.Repeat("s", 20), "--long-names"), entry("a_b"))
	c := r.connect("", `{}`)
	names := c.names()
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || len(name) > 64 || strings.ContainsAny(name, ". /") {
			t.Errorf("bad or doubled name %q", name)
		}
		seen[name] = true
	}
	echo := func(prefix string) string {
		for _, n := range names {
			if strings.HasPrefix(n, prefix) && strings.Contains(n, "__echo") {
				return n
			}
		}
		t.Fatalf("no echo of %s in %v", prefix, names)
		return ""
	}
	for _, prefix := range []string{"a_b__", "sss"} {
		if got := c.text(echo(prefix), `{"text":"x"}`); got != "x" {
			t.Errorf("%s: got %q", prefix, got)
		}
	}
	for _, name := range names {
		if strings.Contains(name, "echo") || strings.Contains(name, "long") || strings.Contains(name, "dot") {
			if m := c.request("tools/call", callParams(name, `{"text":"x"}`)); m.Error != nil {
				t.Errorf("%s is listed and can't be called: %s", name, m.Error)
			}
		}
	}
}

func TestNamesDoNotDependOnOtherServers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("one"))
	c := r.connect("", `{}`)
	alone := c.names()
	r.apply(entry("one"), entry("two"))
	c.note("notifications/tools/list_changed", 1)
	eventually(t, "both servers are listed", func() bool { return len(c.names()) == 2*len(alone) })
	if got := c.names()[:len(alone)]; !slices.Equal(got, alone) {
		t.Errorf("got %v, want %v", got, alone)
	}
}

// A list that the server never gives holds up nothing but itself.
func TestAListThatDoesNotComeHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"", "a"} {
		r := newRig(t)
		r.apply(entry("a", "--hang-on", "prompts/list"))
		c := r.connect(server, `{}`)
		name := c.names()[0]
		if m := c.request("tools/call", callParams(name, `{"text":"x"}`)); m.Error != nil {
			t.Errorf("view %q: %s", server, m.Error)
		}
		if m := c.request("tools/call", callParams("a__nothing", `{}`)); m.Error == nil {
			t.Errorf("view %q: %s", server, m.Result)
		}
	}
}

func TestSharedURIsAreReported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"), entry("b"))
	c := r.connect("", `{}`)
	if m := c.request("resources/list", `{}`); m.Error != nil {
		t.Errorf("got %s", m.Error)
	}
	if !r.warned(`b: server "a" has the resource "test://text" too`) {
		t.Errorf("warnings: %q", r.warnings)
	}
}

func TestDuplicateToolNamesOfOneServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--dup-tools"))
	names := r.connect("", `{}`).names()
	if n := len(slices.DeleteFunc(names, func(n string) bool { return n != "a__echo" })); n != 1 {
		t.Errorf("echo is listed %d times", n)
	}
}

func TestToolListsArePolicyForListingAndCalling(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry("a")
	e.AllowedTools, e.DeniedTools = []string{"e*", "pid", "nobody"}, []string{"env"}
	r.apply(e)
	for view, prefix := range map[string]string{"": "a__", "a": ""} {
		c := r.connect(view, `{}`)
		want := []string{prefix + "echo", prefix + "emit", prefix + "pid"}
		if got := sorted(c.names()); !slices.Equal(got, want) {
			t.Errorf("view %q lists %v, want %v", view, got, want)
		}
		for _, tool := range []string{"env", "count", "no_such_tool"} {
			m := c.request("tools/call", callParams(prefix+tool, "{}"))
			if m.Error == nil || !strings.Contains(string(m.Error), "-32602") {
				t.Errorf("view %q, %s: %s %s", view, tool, m.Result, m.Error)
			}
		}
		if m := c.request("tools/call", callParams(prefix+"env", "{}")); failureCode(m) != "policy.denied" {
			t.Errorf("view %q: %s", view, m.Error)
		}
	}
	if !r.warned("nobody") {
		t.Error("a name that no tool bears is not reported")
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func TestPolicyChangeKeepsTheProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("", `{}`)
	before := c.text("a__pid", `{}`)
	e := entry("a")
	e.DeniedTools = []string{"echo"}
	e.Origin.Line = 2 // as after an edit
	r.apply(e)
	eventually(t, "echo is denied", func() bool { return !slices.Contains(c.names(), "a__echo") })
	c.note("notifications/tools/list_changed", 1)
	if after := c.text("a__pid", `{}`); after != before {
		t.Errorf("the process changed from %s to %s", before, after)
	}
}

func TestInitializeAnswersAtOnceAndTheServerFollows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("slow", "--slow-init", "1s"), entry("fast"))
	c := r.connect("", `{}`)
	if s := r.supervisor.Server("slow").Status().State; s != source.Starting {
		t.Errorf("initialize was answered when the slow server was %s", s)
	}
	if got := c.text("fast__echo", `{"text":"x"}`); got != "x" {
		t.Errorf("got %q", got)
	}
	// A call to the one that still starts waits for it.
	if got := c.text("slow__echo", `{"text":"y"}`); got != "y" {
		t.Errorf("got %q", got)
	}
}

func TestBrokenServersDelayNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	missing := entry("missing")
	missing.Command = "/no/such/program"
	r.apply(missing, entry("crash", "--traceback"), entry("good"))
	c := r.connect("", `{}`)
	if names := c.names(); !slices.Contains(names, "good__echo") {
		t.Errorf("got %v", names)
	}
	r.state("missing", source.Failed)
	m := c.request("tools/call", callParams("missing__echo", "{}"))
	if failureCode(m) != "server.failed" || !strings.Contains(string(m.Result), "/no/such/program") {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
}

func TestParkedServerIsWokenByACall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry("a")
	e.MaxRestarts = 1
	r.apply(e)
	c := r.connect("", `{}`)
	c.names()
	for range 2 {
		pid := c.text("a__pid", `{}`)
		c.request("tools/call", callParams("a__kill_self", "{}"))
		eventually(t, "it is over", func() bool {
			s := r.supervisor.Server("a").Status()
			return s.State == source.Parked || (s.State == source.Ready && fmt.Sprint(s.PID) != pid)
		})
	}
	r.state("a", source.Parked)
	if !slices.Contains(c.names(), "a__echo") {
		t.Error("a parked server's tools are gone from the list")
	}
	if got := c.text("a__echo", `{"text":"again"}`); got != "again" {
		t.Errorf("got %q", got)
	}
}

func TestResultsAreCarriedAsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	all, one := r.connect("", `{}`), r.connect("a", `{}`)
	got, same := all.call("a__weird", `{}`), one.call("weird", `{}`)
	if string(got) != string(same) {
		t.Errorf("the views differ: %s %s", got, same)
	}
	for _, part := range []string{"9007199254740993", "18446744073709551615", "1.0", `"text":""`} {
		if !strings.Contains(string(got), part) {
			t.Errorf("%s is lost in %s", part, got)
		}
	}
	if !json.Valid(got) {
		t.Errorf("no JSON: %s", got)
	}
}

func TestBigAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("a", `{}`)
	for _, size := range []int{100_000, 5_000_000, 50_000_000} {
		if got := len(c.call("big", fmt.Sprintf(`{"bytes":%d}`, size))); got < size || got > size+200 {
			t.Errorf("got %d bytes of %d", got, size)
		}
	}
}

func TestTheFirstListWaitsForASilentServerAsLongAsConfigured(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	silent := entry("silent", "--never-init")
	config := &mcpconfig.Config{
		Dir: r.dir, Servers: []*mcpconfig.Server{entry("good"), silent},
		Settings: mcpconfig.Settings{ListWait: 4 * time.Second},
	}
	began := time.Now()
	r.applyConfig(config)
	c := r.connect("", `{}`)
	if names := c.names(); !slices.Contains(names, "good__echo") {
		t.Errorf("got %v", names)
	}
	if d := time.Since(began); d < 4*time.Second {
		t.Errorf("the first list waited only %s for the silent server", d)
	}
	if waiting := r.gateway.Waiting(); !slices.Equal(waiting, []string{"silent"}) {
		t.Errorf("waiting for %v", waiting)
	}
}

// What lists of servers count is what clients are shown, in every state.
func TestCountedToolsAreThoseThatAreShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	crash := entry("crash")
	crash.MaxRestarts = 0
	off := entry("off")
	off.Enabled = false
	r.apply(entry("a"), crash, off)
	c := r.connect("", `{}`)
	agree := func(server string, state source.State, some bool) {
		t.Helper()
		r.state(server, state)
		eventually(t, server+" is counted as it is shown when "+string(state), func() bool {
			shown := 0
			for _, name := range c.names() {
				if strings.HasPrefix(name, server+"__") {
					shown++
				}
			}
			for _, info := range r.gateway.Servers() {
				if info.Name != server {
					continue
				}
				if info.Tools == nil {
					return shown == 0 && !some
				}
				return some && *info.Tools == shown
			}
			return false
		})
	}
	agree("a", source.Ready, true)
	agree("crash", source.Ready, true)
	c.request("tools/call", callParams("crash__crash", `{"code":1}`))
	agree("crash", source.Parked, true)
	if err := r.supervisor.Server("a").Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	agree("a", source.Stopped, false)
	agree("off", source.Disabled, false)
}
