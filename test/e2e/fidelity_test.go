// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
	"github.com/garraia/garra/test/servers"
)

// TestFidelity compares what each pinned server answers directly with what
// reaches a client through garra, as JSON tokens. The direct client says the same
// about itself as garra does, since servers answer accordingly.
//
// Different are the ids of messages, which every client chooses, the values in
// variables, and, by design, the answer to a call of a tool that doesn't exist,
// which garra gives itself: servers answer it in five ways.
func TestFidelity(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	pinned := answering(t, h)
	hello := garrasHello(t)
	entries := make(map[string]rig.Entry)
	for _, s := range pinned {
		entries[s.Name] = rig.Entry{"command": s.Command, "args": s.Args, "env": s.Env, "cwd": h.Path("work")}
	}
	h.Configure(entries)
	g := h.Serve()
	all := g.Connect("")

	for _, s := range pinned {
		t.Run(s.Name, func(t *testing.T) {
			direct := rig.GreetWith(t, rig.StartPipe(t, directly(t, h, s)), hello)
			overHTTP := g.Connect(s.Name)
			settle(t, direct, overHTTP)
			compare(t, s, direct, overHTTP)
			overPipe, _ := h.Stdio("--server", s.Name)
			compare(t, s, direct, overPipe)
			compareAggregated(t, s.Name, direct, all)
			if err := direct.HangUp(); err != nil {
				t.Logf("%s at the end of its input: %v", s.Name, err)
			}
		})
	}
}

// answering returns the pinned servers that answer.
func answering(t *testing.T, h *rig.Home) []servers.Server {
	t.Helper()
	all, err := servers.Pinned(rig.Absolute(t, rig.ServersFolder), h.Path("work"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s servers.Server) bool { return s.Silent })
}

// directly is a command that runs a server as garra would.
func directly(t *testing.T, h *rig.Home, s servers.Server) *exec.Cmd {
	t.Helper()
	host := envbuild.SystemHost()
	host.Env = h.Environ()
	entry := envbuild.Entry{
		Server: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: h.Path("work"),
	}
	spec, err := envbuild.Build(t.Context(), entry, host, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: spec.Path, Args: spec.Args, Env: spec.Environ(), Dir: spec.Dir}
}

// garrasHello returns the parameters with which garra initializes every server.
func garrasHello(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"recorder": {
		"command": self, "args": []string{recorder, h.Path("first")}, "maxRestarts": 0,
	}})
	g := h.Serve()
	var hello *protocol.Message
	rig.Eventually(t, rig.Patience, "garra greets a server", func() bool {
		line, err := os.ReadFile(h.Path("first"))
		if err == nil {
			hello, err = protocol.Parse(line)
		}
		return err == nil
	})
	g.Stop()
	if hello.Method != protocol.MethodInitialize {
		t.Fatalf("garra says first: %s", hello.Append(nil))
	}
	return string(hello.Params)
}

// settle waits until both clients see the same tools: some servers add tools
// after the handshake.
func settle(t *testing.T, direct, through *rig.Client) {
	t.Helper()
	rig.Eventually(t, rig.Patience, "both see the same tools", func() bool {
		return slices.Equal(direct.Tools(), through.Tools())
	})
}

// A question is a request whose answers are compared.
type question struct{ method, params string }

// questions returns what is asked of a server, according to what it declared and
// lists.
func questions(s servers.Server, c *rig.Client) []question {
	list := []question{
		{protocol.MethodToolsCall, rig.CallParams(s.Tool, string(s.Arguments))},
		{protocol.MethodToolsCall, rig.CallParams(s.Tool, `{"unexpected":1.0}`)},
		{protocol.MethodPing, `{}`},
		{"e2e/unknown", `{"a":[1.0,1e2]}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"completable-prompt"},` +
			`"argument":{"name":"department","value":"E"}}`},
		{"logging/setLevel", `{"level":"warning"}`},
		{"resources/read", `{"uri":"e2e://nothing"}`},
		{"prompts/get", `{"name":"e2e-nothing"}`},
	}
	for _, r := range first(2, c.Items("resources/list", "resources")) {
		list = append(list, question{"resources/read", fmt.Sprintf(`{"uri":%q}`, rig.Member(c.T, r, "uri"))})
	}
	for _, p := range first(4, c.Items("prompts/list", "prompts")) {
		list = append(list, question{"prompts/get", fmt.Sprintf(
			`{"name":%q,"arguments":{"city":"Ulm","state":"BW","department":"Sales","name":"Kim","resourceId":"1"}}`,
			rig.Member(c.T, p, "name"))})
	}
	return list
}

func first[T any](n int, list []T) []T { return list[:min(n, len(list))] }

// compare asks both clients the same things in the same order, so that what a
// server counts is equal too.
func compare(t *testing.T, s servers.Server, direct, through *rig.Client) {
	t.Helper()
	if d := differences(t, direct.Hello, through.Hello); d != "" {
		t.Errorf("initialize differs:\n%s", d)
	}
	for _, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		a, b := direct.List(method), through.List(method)
		if len(a) != len(b) {
			t.Errorf("%s has %d pages, and %d through garra", method, len(a), len(b))
			continue
		}
		for i := range a {
			if d := differences(t, outcomeOf(a[i]), outcomeOf(b[i])); d != "" {
				t.Errorf("%s, page %d, differs:\n%s", method, i+1, d)
			}
		}
	}
	for _, q := range questions(s, direct) {
		a, b := direct.Request(q.method, q.params), through.Request(q.method, q.params)
		if d := differences(t, outcomeOf(a), outcomeOf(b)); d != "" {
			t.Errorf("%s %s differs:\n%s", q.method, q.params, d)
		}
	}
	unknown := protocol.ParseError(through.Call("e2e-nothing", `{}`).Error)
	if unknown.Code != protocol.CodeInvalidParams {
		t.Errorf("an unknown tool: %v", unknown)
	}
}

// compareAggregated compares the tools of a server with what clients of all
// servers see of them: the name differs, and nothing else.
func compareAggregated(t *testing.T, server string, direct, all *rig.Client) {
	t.Helper()
	exposed := make(map[string]protocol.Raw)
	for _, tool := range all.Items(protocol.MethodToolsList, "tools") {
		exposed[rig.Member(t, tool, "name")] = tool
	}
	for _, tool := range direct.Items(protocol.MethodToolsList, "tools") {
		name := server + "__" + rig.Member(t, tool, "name")
		object, err := protocol.ParseObject(tool)
		if err != nil {
			t.Fatal(err)
		}
		object.Set("name", protocol.Quote(name))
		if exposed[name] == nil {
			t.Errorf("%s is not listed", name)
		} else if d := differences(t, object.Raw(), exposed[name]); d != "" {
			t.Errorf("%s differs:\n%s", name, d)
		}
	}
}
