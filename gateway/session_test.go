// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

func TestHandshakeRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.dial("")
	if m := c.request("ping", `{}`); m.Error != nil {
		t.Errorf("ping before initialize: %s", m.Error)
	}
	if m := c.request("tools/list", `{}`); m.Error == nil {
		t.Error("a request before initialize is served")
	}
	if m := c.request("server/discover", `{}`); m.Error == nil || !strings.Contains(string(m.Error), "-32601") {
		t.Errorf("the probe for an era without handshake: %s %s", m.Result, m.Error)
	}
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2099-01-01": "2025-11-25",
	} {
		c := r.dial("")
		m := c.request("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{}}`, asked))
		if !strings.Contains(string(m.Result), fmt.Sprintf(`"protocolVersion":%q`, want)) {
			t.Errorf("asked for %s: %s", asked, m.Result)
		}
		if m := c.request("initialize", `{"protocolVersion":"2025-11-25"}`); m.Error == nil {
			t.Error("a second initialize is served")
		}
	}
}

func TestMalformedMessagesGetAnErrorAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("", `{}`)
	for _, line := range []string{
		`nonsense`, `{"jsonrpc":"2.0","id":`, `[]`, `[{"jsonrpc":"2.0","id":7,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__echo","name":"a__env"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__echo","Name":"env"}}`,
	} {
		c.mu.Lock()
		delete(c.answers, "null")
		c.mu.Unlock()
		c.write(line)
		if m := c.answer("null"); m.Error == nil {
			t.Errorf("%s: %s", line, m.Result)
		}
	}
	if got := c.text("a__echo", `{"text":"x"}`); got != "x" {
		t.Errorf("got %q", got)
	}
}

func TestSlowCallsBlockNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("", `{}`)
	slow := c.send("tools/call", callParams("a__sleep", `{"ms":2000}`))
	var quick []string
	for range 8 {
		quick = append(quick, c.send("tools/call", callParams("a__sleep", `{"ms":50}`)))
	}
	for _, id := range quick {
		c.answer(id)
	}
	if m := c.request("ping", "{}"); m.Error != nil || c.answered(slow) {
		t.Errorf("ping: %s; slow answered: %v", m.Error, c.answered(slow))
	}
}

func TestCancellationReachesTheServerAndIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	marker := filepath.Join(t.TempDir(), "cancelled")
	e := entry("a")
	e.Sandbox.Write = []string{filepath.Dir(marker)}
	r.apply(e)
	c, other := r.connect("a", `{}`), r.connect("a", `{}`)
	a := c.send("tools/call", callParams("sleep", fmt.Sprintf(`{"ms":60000,"marker":%q}`, marker)))
	b := other.send("tools/call", callParams("sleep", `{"ms":300}`))
	c.text("echo", `{"text":"by now the server has both calls"}`)
	c.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s,"reason":"changed my mind"}`, a))
	eventually(t, "the server saw the cancellation", func() bool {
		_, err := os.Stat(marker)
		return err == nil
	})
	if m := other.answer(b); m.Error != nil {
		t.Errorf("another client's call failed: %s", m.Error)
	}
	if c.answered(a) {
		t.Error("the cancelled call was answered")
	}
	if got := c.text("echo", `{"text":"x"}`); got != "x" {
		t.Errorf("the session is broken: %q", got)
	}
}

func TestProgressComesUnderTheClientsTokenAndRestartsTheTimer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry("a")
	e.CallTimeout = time.Second
	r.apply(e)
	c := r.connect("a", `{}`)
	id := c.send("tools/call",
		`{"name":"progress","arguments":{"n":8,"ms":300},"_meta":{"progressToken":"my \"token\""}}`)
	for n := range 8 {
		m := c.note("notifications/progress", n+1)
		if !strings.Contains(string(m.Params), `"progressToken":"my \"token\""`) {
			t.Fatalf("got %s", m.Params)
		}
	}
	if m := c.answer(id); failureCode(m) != "" || m.Error != nil {
		t.Errorf("a call with progress timed out: %s %s", m.Result, m.Error)
	}
	m := c.request("tools/call", callParams("hang", "{}"))
	if failureCode(m) != "call.timeout" {
		t.Errorf("a call without progress: %s %s", m.Result, m.Error)
	}
}

func TestServersQuestionsReachTheClientWhoseCallCausedThem(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	asked, other := r.connect("a", `{"elicitation":{},"sampling":{}}`), r.connect("a", `{"elicitation":{}}`)
	id := asked.send("tools/call", callParams("ask_elicitation", `{"text":"who?"}`))
	q := asked.question("elicitation/create")
	asked.write(`{"jsonrpc":"2.0","id":` + q.ID.String() +
		`,"result":{"action":"accept","content":{"n":9007199254740993}}}`)
	if m := asked.answer(id); !strings.Contains(string(m.Result), "9007199254740993") {
		t.Errorf("the answer did not reach the server: %s %s", m.Result, m.Error)
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	if len(other.asked) > 0 {
		t.Errorf("another client was asked: %v", other.asked)
	}
}

func TestQuestionsThatNobodyCanAnswerFailFast(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	without := r.connect("a", `{}`)
	m := without.request("tools/call", callParams("ask_sampling", `{"text":"x"}`))
	if !strings.Contains(string(m.Result)+string(m.Error), "can't be asked") {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
	one, two := r.connect("a", `{"sampling":{}}`), r.connect("a", `{"sampling":{}}`)
	two.send("tools/call", callParams("sleep", `{"ms":3000}`))
	two.text("echo", `{"text":"by now the server has the call"}`)
	eventually(t, "the question is refused as ambiguous", func() bool {
		m := one.request("tools/call", callParams("ask_sampling", `{"text":"x"}`))
		return strings.Contains(string(m.Result)+string(m.Error), "sharing: session")
	})
}

func TestNotificationsOfAllKindsArrive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--caps", `{"tools":{"listChanged":true},"prompts":{"listChanged":true},`+
		`"resources":{"listChanged":true,"subscribe":true},"logging":{}}`))
	c := r.connect("a", `{}`)
	c.call("log", `{"level":"error","text":"boom"}`)
	c.note("notifications/message", 1)
	for _, method := range []string{
		"notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/vendor/thing",
	} {
		c.call("emit", fmt.Sprintf(`{"method":%q,"params":{}}`, method))
		c.note(method, 1)
	}
	c.request("resources/subscribe", `{"uri":"test://static"}`)
	c.call("emit", `{"method":"notifications/resources/updated","params":{"uri":"test://static","extra":1.0}}`)
	if m := c.note("notifications/resources/updated", 1); !strings.Contains(string(m.Params), `"extra":1.0`) {
		t.Errorf("got %s", m.Params)
	}
}

func TestGrowingToolListReachesClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--grow-tools"))
	c := r.connect("", `{}`)
	before := len(c.names())
	c.call("a__grow", `{}`)
	c.note("notifications/tools/list_changed", 1)
	eventually(t, "the new tool is listed", func() bool { return len(c.names()) > before })
}

func TestKilledServerAnswersAtOnceAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("", `{}`)
	c.names()
	hanging := c.send("tools/call", callParams("a__hang", "{}"))
	c.text("a__echo", `{"text":"by now the server has the call"}`)
	m := c.request("tools/call", callParams("a__kill_self", "{}"))
	if failureCode(m) != "server.crashed" || !strings.Contains(string(m.Result), "killed") {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
	if m := c.answer(hanging); failureCode(m) != "server.crashed" {
		t.Errorf("the other call: %s %s", m.Result, m.Error)
	}
	if got := c.text("a__echo", `{"text":"x"}`); got != "x" {
		t.Errorf("got %q", got)
	}
	if r.supervisor.Server("a").Status().State != source.Ready {
		t.Error("it is not ready")
	}
	if len(c.names()) == 0 {
		t.Error("no tools after the restart")
	}
}

func TestStateLivesBetweenCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("a", `{}`)
	c.call("login", `{"user":"ann"}`)
	if got := c.text("whoami", `{}`); got != "ann" {
		t.Errorf("got %q", got)
	}
}

func TestReloadOfOneServerKeepsTheOthersCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"), entry("b"))
	c := r.connect("", `{}`)
	c.names()
	id := c.send("tools/call", callParams("a__sleep", `{"ms":500}`))
	changed := entry("b", "--instructions", "new")
	changed.Origin.Line = 9
	r.apply(entry("a"), changed, entry("c"))
	if m := c.answer(id); m.Error != nil || failureCode(m) != "" {
		t.Errorf("got %s %s", m.Result, m.Error)
	}
	eventually(t, "c is listed", func() bool { return len(c.names()) > 0 && r.gateway.Has("c") })
	r.apply(entry("a"))
	eventually(t, "b and c are gone", func() bool {
		for _, n := range c.names() {
			if !strings.HasPrefix(n, "a__") {
				return false
			}
		}
		return !r.gateway.Has("b")
	})
}

func TestLogLevelsAndSubscriptionsSurviveARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	caps := `{"tools":{},"logging":{},"resources":{"subscribe":true}}`
	r.apply(entry("a", "--caps", caps))
	quiet, loud := r.connect("a", `{}`), r.connect("", `{}`)
	quiet.request("logging/setLevel", `{"level":"error"}`)
	loud.request("logging/setLevel", `{"level":"debug"}`)
	quiet.request("resources/subscribe", `{"uri":"test://static"}`)
	quiet.request("tools/call", callParams("kill_self", "{}"))
	quiet.text("echo", `{"text":"it is back"}`)
	quiet.call("emit", `{"method":"notifications/resources/updated","params":{"uri":"test://static"}}`)
	quiet.note("notifications/resources/updated", 1)
	quiet.call("log", `{"level":"info","text":"too quiet for this client"}`)
	quiet.call("log", `{"level":"critical","text":"loud enough"}`)
	if m := quiet.note("notifications/message", 1); !strings.Contains(string(m.Params), "critical") {
		t.Errorf("got %s", m.Params)
	}
	if m := loud.request("logging/setLevel", `{"level":"nonsense"}`); m.Error == nil {
		t.Error("nonsense is a log level")
	}
}

func TestMessagesMayFollowInitializeAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--slow-init", "300ms"))
	c := r.dial("a")
	hello := c.send("initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	c.notify("notifications/initialized", `{}`)
	call := c.send("tools/call", callParams("echo", `{"text":"x"}`))
	if m := c.answer(hello); m.Error != nil {
		t.Fatal(string(m.Error))
	}
	if m := c.answer(call); m.Error != nil {
		t.Errorf("got %s", m.Error)
	}
}

func TestACallThatLooksLikeSomethingElseReachesNoServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry("a", "--call-without-id")
	e.DeniedTools = []string{"count"}
	r.apply(e)
	c := r.connect("a", `{}`)
	c.notify("tools/call", callParams("count", "{}"))
	c.notify("initialize", `{"protocolVersion":"1999"}`)
	c.notify("notifications/vendor/seen", `{}`)
	for _, method := range []string{
		"tools/call ", " tools/call", "Tools/Call", "TOOLS/CALL", "tools/call\\u0000", "tool\\u017f/call",
	} {
		id := fmt.Sprint(1000 + len(method))
		params := callParams("count", "{}")
		c.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
		if m := c.answer(id); m.Error == nil || !strings.Contains(string(m.Error), "-32601") {
			t.Errorf("%q: %s %s", method, m.Result, m.Error)
		}
		c.mu.Lock()
		delete(c.answers, id)
		c.mu.Unlock()
	}
	e = entry("a", "--call-without-id")
	e.Origin.Line = 2 // as after an edit
	r.apply(e)
	if got := c.text("count", `{}`); got != "1" {
		t.Errorf("the denied tool ran before: %q", got)
	}
}

// The time that a call waits for its server is the call's own.
func TestWaitingForAServerIsBoundedByTheCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	e := entry("a", "--never-init")
	e.Timeout, e.CallTimeout = time.Hour, 200*time.Millisecond
	r.apply(e)
	c := r.connect("", `{}`)
	if m := c.request("tools/call", callParams("a__echo", `{}`)); failureCode(m) != "call.timeout" {
		t.Errorf("%s %s", m.Result, m.Error)
	}
}

func TestASubscriptionIsItsSessionsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--caps", `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`))
	c, other := r.connect("a", `{}`), r.connect("a", `{}`)
	c.request("resources/subscribe", `{"uri":"test://static"}`)
	if m := other.request("resources/unsubscribe", `{"uri":"test://static"}`); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
	for n := range 3 { // none of which is a reason to subscribe again
		c.call("emit", `{"method":"notifications/tools/list_changed"}`)
		eventually(t, "the list is read again", func() bool {
			return strings.Count(c.text("heard", `{}`), "tools/list") > n+1
		})
	}
	heard := c.text("heard", `{}`)
	if strings.Contains(heard, "unsubscribe") || strings.Count(heard, "resources/subscribe") != 1 {
		t.Errorf("the server heard %s", heard)
	}
	other.request("resources/subscribe", `{"uri":"test://static"}`)
	for _, session := range []*client{c, other} {
		session.request("resources/unsubscribe", `{"uri":"test://static"}`)
	}
	if heard := c.text("heard", `{}`); strings.Count(heard, "unsubscribe") != 1 {
		t.Errorf("the server heard %s", heard)
	}
}

// An answer that is no message ends its call, and nothing else.
func TestGarbledAnswersEndTheirCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("a", `{}`)
	for _, line := range []string{
		`{"id":$id,"result":{}}`, `{"jsonrpc":"2.0","id":$id}`, `{"jsonrpc":"2.0","id":$id,"result":{},"error":{}}`,
		`{"jsonrpc":"2.0","id":$id,"result":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	} {
		m := c.request("tools/call", callParams("say", `{"line":`+string(protocol.Quote(line))+`}`))
		if failureCode(m) != "server.failed" || !strings.Contains(string(m.Result), "no MCP message") {
			t.Errorf("%.60s: %s %s", line, m.Result, m.Error)
		}
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":$id.0,"result":{"content":[]}}`,
		`{"jsonrpc":"2.0","id":$id,"result":{"content":[]},"error":null}`,
	} {
		m := c.request("tools/call", callParams("say", `{"line":`+string(protocol.Quote(line))+`}`))
		if string(m.Result) != `{"content":[]}` {
			t.Errorf("%s: %s %s", line, m.Result, m.Error)
		}
	}
	if got := c.text("echo", `{"text":"x"}`); got != "x" {
		t.Errorf("got %q", got)
	}
}

// A client over HTTP whose gateway was started again is told so, and goes on with
// a new session.
func TestASessionOfAnotherGatewayIsUnknown(t *testing.T) {
	t.Parallel()
	before, after := newRig(t), newRig(t)
	before.apply(entry("a"))
	after.apply(entry("a"))
	c := before.connectHTTP(before.serveHTTP().URL+"/mcp", `{}`)
	c.url = after.serveHTTP().URL + "/mcp"
	if status, body := c.post(toolCall(2, "a__pid", `{}`)); status != 404 || !strings.Contains(body, "initialize") {
		t.Errorf("%d %s", status, body)
	}
	c.session = ""
	c.initialize(`{}`)
	if status, body := c.post(toolCall(3, "a__pid", `{}`)); status != 200 || !strings.Contains(body, "result") {
		t.Errorf("%d %s", status, body)
	}
}

// One client at two endpoints has two sessions, and neither ends the other.
func TestTwoEndpointsOfOneClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"), entry("b"))
	url := r.serveHTTP().URL
	one, two := r.connectHTTP(url+"/mcp/a", `{}`), r.connectHTTP(url+"/mcp/b", `{}`)
	for i := range 5 {
		for _, c := range []*httpClient{one, two} {
			if status, body := c.post(toolCall(10+i, "echo", `{"text":"x"}`)); status != 200 {
				t.Errorf("%s: %d %s", c.url, status, body)
			}
		}
	}
}

// After a restart with other tools, clients are told and find them.
func TestARestartWithOtherTools(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	load := func(tools string) {
		path, args := misbehave.Command("--tools", tools)
		text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
			"a": map[string]any{"command": path, "args": args},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.dir, "mcp.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := mcpconfig.Load(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		r.applyConfig(config)
	}
	load("1")
	c, single := r.connect("", `{}`), r.connect("a", `{}`)
	if names := c.names(); !slices.Contains(names, "a__tool_1") || slices.Contains(names, "a__tool_2") {
		t.Fatalf("%v", names)
	}
	load("2")
	c.note("notifications/tools/list_changed", 1)
	eventually(t, "the new tool is listed", func() bool { return slices.Contains(c.names(), "a__tool_2") })
	if got := c.text("a__tool_2", `{}`); got != "tool_2" {
		t.Errorf("%s", got)
	}
	if got := single.text("tool_2", `{}`); got != "tool_2" {
		t.Errorf("%s", got)
	}
}

// A call in flight ends as it began; the next one is under the new rules.
func TestAReloadDuringACall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connect("", `{}`)
	id := c.send("tools/call", callParams("a__sleep", `{"ms":1000}`))
	c.text("a__echo", `{"text":"by now the server has the call"}`)
	e := entry("a")
	e.DeniedTools = []string{"sleep"}
	e.Origin.Line = 2
	r.apply(e)
	if m := c.request("tools/call", callParams("a__sleep", `{"ms":1}`)); m.Error == nil {
		t.Errorf("the denied tool ran: %s", m.Result)
	}
	if m := c.answer(id); m.Error != nil || textOf(t, m.Result) != "slept" {
		t.Errorf("the call in flight: %s %s", m.Result, m.Error)
	}
}

// However many clients call servers that can't run, these are started as often as
// their policy says, and once more for a call.
func TestManyClientsOfBrokenServers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var entries []*mcpconfig.Server
	for _, name := range []string{"a", "b", "c", "d"} {
		e := entry(name, "--exit-at-start", "--exit-code", "1")
		e.MaxRestarts = 2
		entries = append(entries, e)
	}
	r.apply(append(entries, entry("good"))...)
	var all sync.WaitGroup
	for range 9 {
		all.Go(func() {
			c := r.connect("", `{}`)
			for _, e := range entries {
				m := c.request("tools/call", callParams(e.Name+"__echo", `{}`))
				if m.Error == nil && failureCode(m) == "" {
					t.Errorf("%s answered %s", e.Name, m.Result)
				}
			}
			if got := c.text("good__echo", `{"text":"x"}`); got != "x" {
				t.Errorf("the good one: %s", got)
			}
		})
	}
	all.Wait()
	for _, e := range entries {
		if got := r.supervisor.Server(e.Name).Status().Restarts; got > e.MaxRestarts+1 {
			t.Errorf("%s was started again %d times", e.Name, got)
		}
	}
}
