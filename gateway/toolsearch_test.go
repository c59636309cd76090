// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/mcpconfig"
)

// searched is an entry whose tools are found by asking for them.
func searched(name string, flags ...string) *mcpconfig.Server {
	e := entry(name, flags...)
	e.Tools = mcpconfig.ToolsSearch
	return e
}

// foundTools are the tools of an answer of find_tool.
type foundTools struct {
	Tools []struct {
		Name        string
		InputSchema json.RawMessage
	}
	Servers map[string][]string
	More    int
	Hint    string
}

func (f foundTools) names() (names []string) {
	for _, tool := range f.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func (c *client) find(arguments string) (found foundTools) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(c.text("find_tool", arguments)), &found); err != nil {
		c.t.Fatal(err)
	}
	return found
}

func TestSearchedToolsAreFoundAndCalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(searched("many", "--tools", "300"), entry("few"))
	c := r.connect("", `{}`)
	names := c.names()
	if !slices.Contains(names, "few__echo") || !slices.Contains(names, "find_tool") ||
		!slices.Contains(names, "call_tool") {
		t.Errorf("the list has not what it should: %v", names)
	}
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "many__") }); i >= 0 {
		t.Errorf("%s is in the list", names[i])
	}
	found := c.find(`{"query":"echoing a text"}`)
	if len(found.Tools) == 0 || found.Tools[0].Name != "many__echo" || len(found.Tools[0].InputSchema) == 0 {
		t.Errorf("found %v", found.names())
	}
	if got := c.text("call_tool", `{"name":"many__echo","arguments":{"text":"hello"}}`); got != "hello" {
		t.Errorf("the call gave %q", got)
	}
	if got := c.text("call_tool", `{"name":"many__echo","arguments":"{\"text\":\"hello\"}"}`); got != "hello" {
		t.Errorf("with its arguments as a text the call gave %q", got)
	}
	if got := c.text("many__echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("under its own name the call gave %q", got)
	}
	if !slices.Contains(r.connect("many", `{}`).names(), "tool_300") {
		t.Error("the server alone is not complete")
	}
}

func TestFindingIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(searched("a", "--tools", "300"), searched("b", "--tools", "20"))
	c := r.connect("", `{}`)
	found := c.find(`{"query":"tool"}`)
	if len(found.Tools) != 8 || found.More == 0 {
		t.Errorf("found %d and %d more", len(found.Tools), found.More)
	}
	if found := c.find(`{"query":"tool","limit":1000}`); len(found.Tools) > 50 {
		t.Errorf("found %d", len(found.Tools))
	}
	for _, name := range c.find(`{"query":"tool","server":"b"}`).names() {
		if !strings.HasPrefix(name, "b__") {
			t.Errorf("%s is of another server", name)
		}
	}
	if found := c.find(`{}`); len(found.Servers["a"]) < 300 || len(found.Servers["b"]) < 20 {
		t.Errorf("without a query: %d and %d", len(found.Servers["a"]), len(found.Servers["b"]))
	}
	if found := c.find(`{"query":"zebra"}`); len(found.Tools) != 0 || found.Hint == "" {
		t.Errorf("found %+v", found)
	}
}

// Finding and calling ask the same policy as listing.
func TestDeniedToolsAreNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := searched("a", "--tools", "3")
	e.DeniedTools = []string{"echo"}
	r.apply(e)
	c := r.connect("", `{}`)
	if found := c.find(`{"query":"echo"}`); slices.Contains(found.names(), "a__echo") {
		t.Error("it is found")
	}
	if found := c.find(`{}`); slices.Contains(found.Servers["a"], "a__echo") {
		t.Error("it is named")
	}
	m := c.request("tools/call", callParams("call_tool", `{"name":"a__echo","arguments":{"text":"x"}}`))
	if m.Error == nil || !strings.Contains(string(m.Error), "-32602") {
		t.Errorf("it is called: %s", m.Result)
	}
}

func TestCallsOfNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(searched("a"))
	c := r.connect("", `{}`)
	for arguments, want := range map[string]string{
		`{}`:                                 "call.invalid",
		`{"name":7}`:                         "call.invalid",
		`"text"`:                             "call.invalid",
		`{"name":"a__echo","arguments":[1]}`: "call.invalid",
		`{"name":"a__echo","arguments":"{\"text\":1,\"text\":2}"}`: "call.invalid",
	} {
		if got := failureCode(c.request("tools/call", callParams("call_tool", arguments))); got != want {
			t.Errorf("%s: %q, want %s", arguments, got, want)
		}
	}
	for _, name := range []string{"a__nothing", "find_tool", "call_tool"} {
		m := c.request("tools/call", callParams("call_tool", `{"name":"`+name+`"}`))
		if m.Error == nil || !strings.Contains(string(m.Error), "-32602") {
			t.Errorf("%s: %s", name, m.Result)
		}
	}
}

// What find_tool would overlook is refused, with what it takes.
func TestWrongWishes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(searched("a"))
	c := r.connect("", `{}`)
	for _, arguments := range []string{
		`{"q":"sum"}`, `{"query":5}`, `{"query":["sum"]}`, `{"query":"echo","server":1}`,
		`{"query":"echo","limit":"3"}`, `{"query":"echo","limit":true}`, `[1]`, `{"":1}`,
	} {
		m := c.request("tools/call", callParams("find_tool", arguments))
		if got := failureCode(m); got != "call.invalid" {
			t.Errorf("%s: %q", arguments, got)
		}
		if arguments != `[1]` && !strings.Contains(textOf(t, m.Result), "it takes query and server") {
			t.Errorf("%s: %s", arguments, m.Result)
		}
	}
	for _, arguments := range []string{
		`{"query":"echo","server":null,"limit":null}`, `{"query":"echo","limit":2.5}`, `{"query":"echo","limit":-1}`,
	} {
		if found := c.find(arguments); len(found.Tools) == 0 {
			t.Errorf("%s finds nothing", arguments)
		}
	}
}

// The pair is there when a server asks for it, and no longer.
func TestSearchIsAChoice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("", `{}`)
	if m := c.request("tools/call", callParams("find_tool", `{"query":"x"}`)); m.Error == nil {
		t.Error("find_tool is there unasked")
	}
	before := len(c.names())
	r.apply(searched("a"))
	c.note("notifications/tools/list_changed", 1)
	if names := c.names(); !slices.Equal(names, []string{"find_tool", "call_tool"}) {
		t.Errorf("got %v", names)
	}
	r.apply(entry("a"))
	c.note("notifications/tools/list_changed", 2)
	if names := c.names(); len(names) != before {
		t.Errorf("got %v", names)
	}
}
