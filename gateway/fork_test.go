// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/mcpconfig"
)

// owned is an entry of which each client has a process.
func owned(name string, flags ...string) *mcpconfig.Server {
	e := entry(name, flags...)
	e.Sharing = mcpconfig.SharingSession
	// Tests tell processes apart by their ids, of which a sandbox would have the same in each.
	e.Sandbox.Mode = mcpconfig.SandboxOff
	return e
}

// pid calls a server's tool that says which process it is.
func (c *client) pid(tool string) int {
	c.t.Helper()
	pid, err := strconv.Atoi(c.text(tool, `{}`))
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// alive reports whether a process runs, where a system can tell by signal 0.
func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	return err == nil && process.Signal(syscall.Signal(0)) == nil
}

func TestEachClientHasItsOwnProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"), entry("shared"))
	ann, bob := r.connect("", `{}`), r.connect("s", `{}`)
	ann.text("s__login", `{"user":"ann"}`)
	bob.text("login", `{"user":"bob"}`)
	if a, b := ann.text("s__whoami", `{}`), bob.text("whoami", `{}`); a != "ann" || b != "bob" {
		t.Errorf("the two are %q and %q", a, b)
	}
	mine, his := ann.pid("s__pid"), bob.pid("pid")
	common := r.supervisor.Server("s").Status().PID
	if mine == his || mine == common || his == common {
		t.Errorf("the processes are %d, %d, and %d for the lists", mine, his, common)
	}
	if !slices.Contains(bob.names(), "echo") || !slices.Contains(ann.names(), "s__echo") {
		t.Error("the lists lack tools")
	}
	ann.conn.Close()
	eventually(t, "the process ends with its client", func() bool { return !alive(mine) })
	if bob.pid("pid") != his {
		t.Error("the other client has another process now")
	}
}

// Both ask at the same time, which no process that they share could do.
func TestQuestionsOfOwnProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"))
	ann, bob := r.connect("", `{"elicitation":{}}`), r.connect("s", `{"elicitation":{}}`)
	hers := ann.send("tools/call", callParams("s__ask_elicitation", `{"text":"for ann"}`))
	his := bob.send("tools/call", callParams("ask_elicitation", `{"text":"for bob"}`))
	for name, c := range map[string]*client{"ann": ann, "bob": bob} {
		q := c.question("elicitation/create")
		if !strings.Contains(string(q.Params), "for "+name) {
			t.Errorf("%s is asked %s", name, q.Params)
		}
		c.write(`{"jsonrpc":"2.0","id":` + q.ID.String() +
			`,"result":{"action":"accept","content":{"by":"` + name + `"}}}`)
	}
	for c, id := range map[*client]string{ann: hers, bob: his} {
		if m := c.answer(id); m.Error != nil {
			t.Errorf("%s", m.Error)
		}
	}
}

// What a client's own process says reaches that client alone.
func TestNewsOfOwnProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s", "--caps", `{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}`))
	ann, bob := r.connect("s", `{}`), r.connect("s", `{}`)
	for _, c := range []*client{ann, bob} {
		if m := c.request("resources/subscribe", `{"uri":"test://a"}`); m.Error != nil {
			t.Fatalf("%s", m.Error)
		}
	}
	emit := `{"method":"notifications/resources/updated","params":{"uri":"test://a"}}`
	ann.text("emit", emit)
	ann.note("notifications/resources/updated", 1)
	ann.text("emit", `{"method":"notifications/tools/list_changed","params":{}}`)
	ann.note("notifications/tools/list_changed", 1)
	ann.text("emit", `{"method":"notifications/custom","params":{}}`)
	ann.note("notifications/custom", 1)
	bob.text("emit", emit)
	bob.note("notifications/resources/updated", 1)
	for _, m := range bob.notes {
		if m.Method == "notifications/custom" {
			t.Error("the other client heard of it")
		}
	}
}

func TestCrashOfOneOwnProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"))
	ann, bob := r.connect("", `{}`), r.connect("", `{}`)
	first, his := ann.pid("s__pid"), bob.pid("s__pid")
	m := ann.request("tools/call", callParams("s__kill_self", `{}`))
	if got := failureCode(m); got != "server.crashed" {
		t.Errorf("the call that crashes gives %q: %s", got, m.Result)
	}
	if second := ann.pid("s__pid"); second == first {
		t.Error("it is the process that crashed")
	}
	if bob.pid("s__pid") != his {
		t.Error("the other client lost its process")
	}
	if n := r.supervisor.Server("s").Status().Restarts; n != 0 {
		t.Errorf("what they share was restarted %d times", n)
	}
}

func TestOwnProcessesEndWhenTheyAreIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := owned("s")
	e.IdleStop = 100 * time.Millisecond
	r.apply(e)
	c := r.connect("", `{}`)
	c.text("s__login", `{"user":"ann"}`)
	first := c.pid("s__pid")
	if got := c.text("s__sleep", `{"ms":300}`); got == "" {
		t.Error("a call that takes longer is not answered")
	}
	eventually(t, "the idle process ends", func() bool { return !alive(first) })
	if second := c.pid("s__pid"); second == first {
		t.Error("it is the same process")
	}
}

// A person stops the server: that is all of it, until it is started again.
func TestStoppingOwnProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"))
	c := r.connect("", `{}`)
	pid := c.pid("s__pid")
	server := r.supervisor.Server("s")
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("the client's process is still there")
	}
	if got := failureCode(c.request("tools/call", callParams("s__pid", `{}`))); got != "server.stopped" {
		t.Errorf("a call gives %q", got)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.pid("s__pid")
	changed := owned("s", "--instructions", "other")
	r.apply(changed)
	if again := c.pid("s__pid"); again == pid {
		t.Error("an edit keeps the client's process")
	}
}

// Clients without a session have a process for each token.
func TestOwnProcessesWithoutASession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"))
	ann := r.modern("/mcp/s", `{}`)
	bob := &modernClient{httpClient{t: t, url: ann.url, who: "bob"}, `{}`}
	pid := func(c *modernClient) string { return textOf(t, c.tool("pid", `{}`, "").Result) }
	if a, b := pid(ann), pid(bob); a == b || a != pid(ann) {
		t.Errorf("the processes are %s and %s, and then %s", a, b, pid(ann))
	}
}

// With its token goes what servers had for a client without a session.
func TestOwnProcessesEndWithTheirToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"))
	ann := r.modern("/mcp/s", `{}`)
	pid, err := strconv.Atoi(textOf(t, ann.tool("pid", `{}`, "").Result))
	if err != nil {
		t.Fatal(err)
	}
	r.gateway.EndSessions(func(principal string) bool { return strings.Contains(principal, "ann") })
	eventually(t, "the process ends with the token", func() bool { return !alive(pid) })
}

// An edit that has clients share the server ends what they had alone.
func TestSharingIsEdited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(owned("s"))
	c := r.connect("", `{}`)
	mine := c.pid("s__pid")
	r.apply(entry("s"))
	eventually(t, "the client's process ends", func() bool { return !alive(mine) })
	if got := c.pid("s__pid"); got != r.supervisor.Server("s").Status().PID {
		t.Errorf("the client is served by %d", got)
	}
}

// Who subscribed has a process as long as that, without calls, and again after a
// restart.
func TestSubscribersKeepTheirProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := owned("s", "--caps", `{"tools":{},"resources":{"subscribe":true}}`)
	e.IdleStop = 50 * time.Millisecond
	r.apply(e)
	c, idle := r.connect("s", `{}`), r.connect("s", `{}`)
	if m := c.request("resources/subscribe", `{"uri":"test://a"}`); m.Error != nil {
		t.Fatalf("%s", m.Error)
	}
	first, others := c.pid("pid"), idle.pid("pid")
	eventually(t, "a process that nobody needs ends", func() bool { return !alive(others) })
	if c.pid("pid") != first {
		t.Error("the subscriber has another process")
	}
	if err := r.supervisor.Server("s").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the subscriber has a process again", func() bool {
		return len(r.supervisor.Server("s").Holders()) == 1
	})
	c.text("emit", `{"method":"notifications/resources/updated","params":{"uri":"test://a"}}`)
	c.note("notifications/resources/updated", 1)
	if m := c.request("resources/unsubscribe", `{"uri":"test://a"}`); m.Error != nil {
		t.Fatalf("%s", m.Error)
	}
	eventually(t, "it ends when it is idle", func() bool { return len(r.supervisor.Server("s").Holders()) == 0 })
}
