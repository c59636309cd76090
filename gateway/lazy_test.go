// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// sleepy is an entry of a server that sleeps soon.
func sleepy(name string, flags ...string) *mcpconfig.Server {
	e := entry(name, flags...)
	e.Start, e.IdleStop = mcpconfig.StartLazy, 200*time.Millisecond
	return e
}

// asleep waits until a server sleeps.
func (r *rig) asleep(name string) {
	r.t.Helper()
	eventually(r.t, name+" sleeps", func() bool {
		now := r.supervisor.Server(name).Status()
		return now.Asleep && now.State == source.Stopped
	})
}

// heard counts notifications of a method.
func (c *client) heard(method string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.notes {
		if m.Method == method {
			n++
		}
	}
	return n
}

// Clients don't see whether a lazy server runs.
func TestNothingFlickersWhenServersSleep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(sleepy("a", "--instructions", "be kind"), entry("b"))
	c := r.connect("", `{}`)
	names := c.names() // which starts it, since nobody knows yet what it has
	if !slices.Contains(names, "a__echo") || !slices.Contains(names, "b__echo") {
		t.Fatalf("%v", names)
	}
	for range 3 {
		r.asleep("a")
		if got := c.names(); !slices.Equal(got, names) {
			t.Errorf("asleep: %v", got)
		}
		if got := c.text("a__echo", `{"text":"x"}`); got != "x" {
			t.Errorf("%q", got)
		}
		if got := c.names(); !slices.Equal(got, names) {
			t.Errorf("awake: %v", got)
		}
	}
	r.asleep("a")
	info := r.gateway.Servers()[0]
	if !info.Asleep || info.State != source.Stopped || info.Tools == nil || info.ToolsAsOf == nil {
		t.Errorf("%+v", info)
	}
	greeting := r.dial("").request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},`+
		`"clientInfo":{"name":"t","version":"1"}}`)
	if !strings.Contains(string(greeting.Result), "be kind") {
		t.Errorf("the instructions are gone: %s", greeting.Result)
	}
	before := c.heard("notifications/tools/list_changed")
	if got := c.text("a__echo", `{"text":"x"}`); got != "x" {
		t.Errorf("%q", got)
	}
	r.asleep("a")
	if got := c.heard("notifications/tools/list_changed"); got != before {
		t.Errorf("told %d times that the tools have changed", got-before)
	}
}

// What a lazy server offers is known in the next life of garra, before it is started.
func TestOffersAreKept(t *testing.T) {
	t.Parallel()
	options := gateway.Options{Memory: catalog.NewMemory(t.TempDir())}
	first := newRigWith(t, options)
	first.apply(sleepy("a", "--tools", "3", "--instructions", "be kind"))
	c := first.connect("", `{}`)
	names := c.names()
	prompts := c.request("prompts/list", `{}`).Result
	first.asleep("a")

	second := newRigWith(t, options)
	second.apply(sleepy("a", "--tools", "3", "--instructions", "be kind"))
	c = second.connect("", `{}`)
	if got := c.names(); !slices.Equal(got, names) || len(got) < 4 {
		t.Errorf("%v, want %v", got, names)
	}
	if got := c.request("prompts/list", `{}`).Result; string(got) != string(prompts) {
		t.Errorf("%s, want %s", got, prompts)
	}
	if now := second.supervisor.Server("a").Status(); !now.Asleep || now.Tried {
		t.Errorf("it was started: %+v", now)
	}
	if info := second.gateway.Servers()[0]; info.ToolsAsOf == nil || info.Tools == nil {
		t.Errorf("it isn't said from when the tools are: %+v", info)
	}
	if got := c.text("a__tool_1", `{}`); got == "" {
		t.Error("no answer")
	}
	second.state("a", source.Ready)
	if info := second.gateway.Servers()[0]; info.ToolsAsOf != nil {
		t.Errorf("%+v", info)
	}
}

// A lazy server that can't be started is told of as any other, once it is needed.
func TestLazyServersThatFail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := sleepy("a")
	e.Command = "/nonexistent"
	r.apply(e, entry("b"))
	c := r.connect("", `{}`)
	if got := c.names(); !slices.Contains(got, "b__echo") {
		t.Errorf("%v", got)
	}
	r.state("a", source.Failed)
	if info := r.gateway.Servers()[0]; info.LastError == nil || !strings.Contains(*info.LastError, "/nonexistent") {
		t.Errorf("%+v", info)
	}
}

// A person who stops one takes it out of what clients see, also when it slept.
func TestStoppedLazyServers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(sleepy("a"))
	c := r.connect("", `{}`)
	if len(c.names()) == 0 {
		t.Fatal("no tools")
	}
	r.asleep("a")
	if err := r.supervisor.Server("a").Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no tools", func() bool { return len(c.names()) == 0 })
	if c.heard("notifications/tools/list_changed") == 0 {
		t.Error("nobody was told")
	}
}
