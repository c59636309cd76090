// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/protocol"
)

const modern = string(protocol.LatestStateless)

// envelope is the _meta of a request of the stateless era.
func envelope(capabilities string) string {
	return fmt.Sprintf(`"_meta":{%q:%q,%q:%s}`, protocol.MetaRevision, modern, protocol.MetaCapabilities, capabilities)
}

// A modernClient is a client over HTTP in the stateless era.
type modernClient struct {
	httpClient
	caps string
}

func (r *rig) modern(path, caps string) *modernClient {
	return &modernClient{httpClient{t: r.t, url: r.serveHTTP().URL + path, who: "ann"}, caps}
}

// ask sends a request, with the headers that go with it; name is empty where the
// method has none, and members are those of its params.
func (c *modernClient) ask(method, name, members string, headers ...string) (int, *protocol.Message) {
	c.t.Helper()
	if members != "" {
		members = "," + members
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, envelope(c.caps), members)
	headers = append([]string{"Mcp-Protocol-Version", modern, "Mcp-Method", method, "Mcp-Name", name}, headers...)
	status, text := c.post(body, headers...)
	m, err := protocol.Parse([]byte(text))
	if err != nil {
		c.t.Fatalf("%s: %d %q: %v", method, status, text, err)
	}
	return status, m
}

func (c *modernClient) tool(name, arguments, more string) *protocol.Message {
	c.t.Helper()
	_, m := c.ask("tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s%s`, name, arguments, more))
	return m
}

// Servers of both eras are one to a client of the stateless era.
func TestStatelessClientUsesServersOfBothEras(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"), sdkEntry("b"))
	c := r.modern("/mcp", `{}`)
	_, m := c.ask("server/discover", "", "")
	if !strings.Contains(string(m.Result), modern) || !strings.Contains(string(m.Result), `"name":"garra"`) {
		t.Errorf("discover: %s %s", m.Result, m.Error)
	}
	_, m = c.ask("tools/list", "", "")
	for _, part := range []string{
		`"a__echo"`, `"b__echo"`, `"resultType":"complete"`, `"ttlMs":0`, `"cacheScope":"private"`,
	} {
		if !strings.Contains(string(m.Result), part) {
			t.Errorf("the list has no %s: %.300s", part, m.Result)
		}
	}
	for _, name := range []string{"a__echo", "b__echo"} {
		m := c.tool(name, `{"text":"hi"}`, "")
		if textOf(t, m.Result) != "hi" || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
			t.Errorf("%s: %s %s", name, m.Result, m.Error)
		}
	}
	// The server of the handshake era has not seen the envelope.
	if m := c.tool("a__count", `{}`, ""); textOf(t, m.Result) != "1" {
		t.Errorf("%s", m.Result)
	}
}

func TestStatelessRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.modern("/mcp", `{}`)
	for name, tt := range map[string]struct {
		method, name, members string
		headers               []string
		status, code          int
	}{
		"another method":     {"tools/list", "", "", []string{"Mcp-Method", "tools/call"}, 400, -32020},
		"no method header":   {"tools/list", "", "", []string{"Mcp-Method", ""}, 400, -32020},
		"another name":       {"tools/call", "x", `"name":"a__echo"`, nil, 400, -32020},
		"another revision":   {"tools/list", "", "", []string{"Mcp-Protocol-Version", "2027-01-01"}, 400, -32020},
		"no revision header": {"tools/list", "", "", []string{"Mcp-Protocol-Version", ""}, 400, -32020},
		"ping":               {"ping", "", "", nil, 404, -32601},
		"set level":          {"logging/setLevel", "", `"level":"info"`, nil, 404, -32601},
		"subscribe":          {"resources/subscribe", "", `"uri":"test://text"`, nil, 404, -32601},
		"unknown":            {"no/such", "", "", nil, 404, -32601},
		"unknown tool":       {"tools/call", "a__no", `"name":"a__no"`, nil, 400, -32602},
		"no such resource":   {"resources/read", "x://y", `"uri":"x://y"`, nil, 400, -32602},
		"name in base64": {
			"tools/call", "=?base64?YV9fZWNobw==?=", `"name":"a__echo","arguments":{"text":"x"}`, nil, 200, 0,
		},
	} {
		status, m := c.ask(tt.method, tt.name, tt.members, tt.headers...)
		code := 0
		if m.Error != nil {
			code = protocol.ParseError(m.Error).Code
		}
		if status != tt.status || code != tt.code || m.ID.String() != "1" {
			t.Errorf("%s: %d %s", name, status, m.Append(nil))
		}
	}
	bare := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%s}}`
	for meta, code := range map[string]string{
		``: "-32602",
		fmt.Sprintf(`"_meta":{%q:%q}`, protocol.MetaRevision, modern): "-32602",
	} {
		status, body := c.post(fmt.Sprintf(bare, meta), "Mcp-Protocol-Version", modern, "Mcp-Method", "tools/list")
		if status != 400 || !strings.Contains(body, code) {
			t.Errorf("_meta %q: %d %s", meta, status, body)
		}
	}
	later := strings.ReplaceAll(envelope(`{}`), modern, "2030-01-01")
	status, body := c.post(fmt.Sprintf(bare, later), "Mcp-Protocol-Version", "2030-01-01", "Mcp-Method", "tools/list")
	if status != 400 || !strings.Contains(body, "-32022") || !strings.Contains(body, `"supported":["2026-07-28"`) {
		t.Errorf("a later revision: %d %s", status, body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if resp := c.do(t.Context(), method, "", "Mcp-Protocol-Version", modern); resp.StatusCode != 405 {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

// asked reads a question out of a result: its key, method, and the state.
func asked(t *testing.T, m *protocol.Message) (key, method, state string) {
	t.Helper()
	var r struct {
		ResultType    string
		InputRequests map[string]struct{ Method string }
		RequestState  string
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || r.ResultType != "input_required" {
		t.Fatalf("no question: %s %s", m.Result, m.Error)
	}
	for key, q := range r.InputRequests {
		return key, q.Method, r.RequestState
	}
	t.Fatalf("no question: %s", m.Result)
	return
}

func reply(key, state, answer string) string {
	return fmt.Sprintf(`,"inputResponses":{%q:%s},"requestState":%q`, key, answer, state)
}

// A server of the handshake era asks a client of the stateless era by the result
// of its call.
func TestHandshakeServerAsksStatelessClient(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.modern("/mcp/a", `{"elicitation":{}}`)
	answer := `{"action":"accept","content":{"n":9007199254740993}}`
	begin := func() (key, state string) {
		key, method, state := asked(t, c.tool("ask_elicitation", `{"text":"?"}`, ""))
		if method != "elicitation/create" {
			t.Errorf("asked %s", method)
		}
		return key, state
	}
	key, state := begin()
	stranger := &modernClient{c.httpClient, c.caps}
	stranger.who = "bob"
	for name, m := range map[string]*protocol.Message{
		"another principal": stranger.tool("ask_elicitation", `{"text":"?"}`, reply(key, state, answer)),
		"another request":   c.tool("ask_elicitation", `{"text":"other"}`, reply(key, state, answer)),
		"made up":           c.tool("ask_elicitation", `{"text":"?"}`, reply(key, "garra:x", answer)),
	} {
		if m.Error == nil || !strings.Contains(string(m.Error), "-32602") {
			t.Errorf("%s: %s %s", name, m.Result, m.Error)
		}
	}
	m := c.tool("ask_elicitation", `{"text":"?"}`, reply(key, state, answer))
	if !strings.Contains(string(m.Result), "9007199254740993") {
		t.Errorf("%s %s", m.Result, m.Error)
	}
	if m := c.tool("ask_elicitation", `{"text":"?"}`, reply(key, state, answer)); m.Error == nil {
		t.Errorf("a state is good for two: %s", m.Result)
	}

	// Without an answer it is asked again, under another state.
	_, state = begin()
	key, _, next := asked(t, c.tool("ask_elicitation", `{"text":"?"}`, fmt.Sprintf(`,"requestState":%q`, state)))
	if next == state {
		t.Error("a state is good for two")
	}
	if m := c.tool("ask_elicitation", `{"text":"?"}`, reply(key, next, answer)); m.Error != nil {
		t.Errorf("%s", m.Error)
	}

	// A client that can't be asked isn't.
	c.caps = `{}`
	if m := c.tool("ask_elicitation", `{"text":"?"}`, ""); !strings.Contains(textOf(t, m.Result), "can't be asked") {
		t.Errorf("%s", m.Result)
	}
}

// A server of the stateless era asks by its result, whoever the client is.
func TestStatelessServerAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(sdkEntry("b"))
	c := r.modern("/mcp/b", `{"elicitation":{}}`)
	key, _, state := asked(t, c.tool("name", `{}`, ""))
	if key != "who" || state != "state 1" {
		t.Errorf("%q, %q: not the server's own", key, state)
	}
	m := c.tool("name", `{}`, reply(key, state, `{"action":"accept","content":{"name":"Ann"}}`))
	if got := textOf(t, m.Result); got != "hello Ann, state 1" {
		t.Errorf("%s", got)
	}

	old := r.connect("", `{"elicitation":{}}`)
	id := old.send("tools/call", callParams("b__name", `{}`))
	q := old.question("elicitation/create")
	old.write(`{"jsonrpc":"2.0","id":` + q.ID.String() + `,"result":{"action":"accept","content":{"name":"Bob"}}}`)
	if got := textOf(t, old.answer(id).Result); got != "hello Bob, state 1" {
		t.Errorf("%s", got)
	}
	unable := r.connect("", `{}`)
	if m := unable.request("tools/call", callParams("b__name", `{}`)); m.Error == nil {
		t.Errorf("%s", m.Result)
	}
}

// No server gets roots, or makes a client of the stateless era answer a question,
// by spelling that in an odd way.
func TestQuestionsThatAreNone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	modernServer := entry("m", "--no-handshake")
	r.apply(entry("h"), modernServer)
	roots := `{"r":{"method":"roots/list"}}`
	for name, result := range map[string]string{
		"plain":   `{"resultType":"input_required","inputRequests":` + roots + `}`,
		"escaped": `{"result\u0054ype":"input_requir\u0065d","inputRequests":` + roots + `}`,
		"twice":   `{"resultType":"input_required","resultType":"complete","inputRequests":` + roots + `}`,
		"hidden method": `{"resultType":"input_required",` +
			`"inputRequests":{"r":{"method":"roots/list","method":"x"}}}`,
		"crowded": `{"resultType":"input_required",` + strings.Repeat(`"x":0,`, 20_000) +
			`"inputRequests":` + roots + `}`,
	} {
		line := `{"jsonrpc":"2.0","id":$id,"result":` + result + `}`
		say := `{"line":` + string(protocol.Quote(line)) + `}`
		for _, server := range []string{"h", "m"} {
			c := r.modern("/mcp/"+server, `{"roots":{}}`)
			m := c.tool("say", say, "")
			if strings.Contains(string(m.Result), "input_requir") {
				t.Errorf("%s of %s: %.200s", name, server, m.Result)
			}
			old := r.connect(server, `{"roots":{}}`)
			old.request("tools/call", callParams("say", say))
			if old.wasAsked() {
				t.Errorf("%s of %s: the client was asked", name, server)
			}
		}
	}
	// Where they are not forwarded, a server doesn't hear that there are any.
	c := r.modern("/mcp/m", `{"roots":{},"sampling":{}}`)
	if m := c.tool("params", `{}`, ""); strings.Contains(textOf(t, m.Result), "roots") ||
		!strings.Contains(textOf(t, m.Result), "sampling") {
		t.Errorf("the server heard %s", m.Result)
	}
}

// A client of the handshake era has all of a server of the stateless era: its
// greeting, news, subscriptions and logs.
func TestHandshakeClientOfAStatelessServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(sdkEntry("b"))
	c := r.dial("b")
	m := c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{}}`)
	for _, part := range []string{`"protocolVersion":"2025-11-25"`, `"name":"modern"`, `Be modern.`} {
		if !strings.Contains(string(m.Result), part) {
			t.Errorf("no %s in %s %s", part, m.Result, m.Error)
		}
	}
	c.notify("notifications/initialized", `{}`)
	eventually(t, "the server tells of a new tool", func() bool {
		c.text("grow", `{}`)
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.notes) > 0
	})
	if note := c.note("notifications/tools/list_changed", 1); strings.Contains(string(note.Params), "subscriptionId") {
		t.Errorf("garra's own subscription is told: %s", note.Params)
	}
	if m := c.request("resources/subscribe", `{"uri":"test://clock"}`); m.Error != nil {
		t.Fatalf("subscribing: %s", m.Error)
	}
	c.text("tick", `{}`)
	if note := c.note("notifications/resources/updated", 1); !strings.Contains(string(note.Params), "test://clock") {
		t.Errorf("%s", note.Params)
	}
	if m := c.request("resources/unsubscribe", `{"uri":"test://clock"}`); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
	if m := c.request("logging/setLevel", `{"level":"warning"}`); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
	c.text("log", `{}`)
	c.note("notifications/message", 1)
	if m := c.request("ping", `{}`); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
}

// A server that takes no handshake is found out.
func TestAServerThatTakesNoHandshake(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--no-handshake"))
	c := r.connect("", `{}`)
	if got := c.text("a__echo", `{"text":"x"}`); got != "x" {
		t.Errorf("%s", got)
	}
	if got := r.supervisor.Server("a").Status().Hello.Revision; got != protocol.LatestStateless {
		t.Errorf("revision %s", got)
	}
}

func TestListening(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--grow-tools", "--caps", `{"tools":{"listChanged":true},"resources":{"subscribe":true}}`),
		sdkEntry("b"))
	c := r.modern("/mcp", `{}`)
	c.ask("tools/list", "", "") // both are there
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := `{"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{` + envelope(`{}`) +
		`,"notifications":{"toolsListChanged":true,` +
		`"resourceSubscriptions":["test://clock","test://text","no://such"]}}}`
	resp := c.do(ctx, http.MethodPost, body, "Mcp-Protocol-Version", modern, "Mcp-Method", "subscriptions/listen")
	next := events(t, resp.Body)
	_, ack := next()
	for _, part := range []string{
		"notifications/subscriptions/acknowledged", `subscriptionId":"L"`, `"toolsListChanged":true`,
		"test://clock", "test://text",
	} {
		if !strings.Contains(ack, part) {
			t.Errorf("no %s in %s", part, ack)
		}
	}
	if strings.Contains(ack, "no://such") {
		t.Errorf("agreed to what isn't there: %s", ack)
	}
	c.tool("b__tick", `{}`, "")
	c.tool("a__grow", `{}`, "")
	for heard := map[string]bool{}; len(heard) < 2; {
		_, data := next()
		if data == "" {
			t.Fatalf("the stream ended; heard %v", heard)
		}
		m, err := protocol.Parse([]byte(data))
		if err != nil || !strings.Contains(string(m.Params), `subscriptionId":"L"`) {
			t.Fatalf("%s: %v", data, err)
		}
		if strings.Contains(m.Method, "prompts") {
			t.Errorf("heard what wasn't asked for: %s", data)
		}
		heard[m.Method] = true
	}
	cancel()
	io.Copy(io.Discard, resp.Body)
	eventually(t, "the subscription at the server ends", func() bool {
		return strings.Contains(textOf(t, c.tool("a__heard", `{}`, "").Result), "resources/unsubscribe")
	})
}

// Over a pipe, a client needs no handshake either.
func TestStatelessPipe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.dial("a")
	m := c.request("tools/call", `{"name":"echo","arguments":{"text":"hi"},`+envelope(`{}`)+`}`)
	if textOf(t, m.Result) != "hi" || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
		t.Errorf("%s %s", m.Result, m.Error)
	}
	id := c.send("tools/call", `{"name":"sleep","arguments":{"ms":60000},`+envelope(`{}`)+`}`)
	c.notify("notifications/cancelled", `{"requestId":`+id+`}`)
	if m := c.request("tools/list", `{`+envelope(`{}`)+`}`); m.Error != nil || c.answered(id) {
		t.Errorf("%s", m.Error)
	}
}

// A client that closes its response ends its call.
func TestClosingTheResponseCancels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	marker := filepath.Join(r.dir, "cancelled")
	e := entry("a")
	e.Sandbox.Write = []string{r.dir}
	r.apply(e)
	c := r.modern("/mcp/a", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	meta := strings.Replace(envelope(`{}`), "{", `{"progressToken":"p",`, 1)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"progress",`+
		`"arguments":{"n":1000,"ms":50,"marker":%q}}}`, meta, marker)
	resp := c.do(ctx, http.MethodPost, body,
		"Mcp-Protocol-Version", modern, "Mcp-Method", "tools/call", "Mcp-Name", "progress")
	if id, data := events(t, resp.Body)(); !strings.Contains(data, `"progressToken":"p"`) || id != "" {
		t.Errorf("%q %s", id, data)
	}
	cancel()
	eventually(t, "the server hears of the end", func() bool {
		_, err := os.Stat(marker)
		return err == nil
	})
}

// The end of a principal is that of its requests and of its calls that wait.
func TestEndSessionsEndsStatelessRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.modern("/mcp/a", `{"elicitation":{}}`)
	key, _, state := asked(t, c.tool("ask_elicitation", `{"text":"?"}`, ""))
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + envelope(`{}`) +
		`,"notifications":{"toolsListChanged":true}}}`
	headers := []string{"Mcp-Protocol-Version", modern, "Mcp-Method", "subscriptions/listen"}
	stream := c.do(t.Context(), http.MethodPost, body, headers...)
	next := events(t, stream.Body)
	next()
	r.gateway.EndSessions(func(principal string) bool { return principal == "ann" })
	for data := "x"; data != ""; {
		_, data = next() // until the stream ends
	}
	m := c.tool("ask_elicitation", `{"text":"?"}`, reply(key, state, `{"action":"accept"}`))
	if m.Error == nil || !strings.Contains(string(m.Error), "-32602") {
		t.Errorf("%s %s", m.Result, m.Error)
	}
	if status, body := c.post(body, append(headers, "Accept", "application/json")...); status != 406 {
		t.Errorf("a stream for who takes none: %d %s", status, body)
	}
}

// A client on a pipe that listens is not waited for when it has closed its side.
func TestAPipeThatListensEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--caps", `{"tools":{"listChanged":true}}`))
	in, say := io.Pipe()
	hear, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends with the pipe
		ended <- r.gateway.ServePipe(context.Background(), in, out, gateway.PipeClient{Principal: "test"})
		out.Close()
	}()
	fmt.Fprintf(say, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{%s,`+
		`"notifications":{"toolsListChanged":true}}}`+"\n", envelope(`{}`))
	frames := protocol.NewReader(hear, 0)
	if frame, err := frames.Next(); err != nil || !strings.Contains(string(frame), "acknowledged") {
		t.Fatalf("%s, %v", frame, err)
	}
	go io.Copy(io.Discard, hear) // ends with out
	began := time.Now()
	say.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 8*time.Second { // a request in flight would be waited for
		t.Errorf("it took %v", took)
	}
}

// A request that names a log level has the server log as much, which is told the
// level in its own era's way: once, and again when it was told to log less.
func TestStatelessLogLevelIsToldToTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a", "--caps", `{"tools":{},"logging":{}}`))
	quiet := r.modern("/mcp", `{}`)
	loud := r.modern("/mcp", fmt.Sprintf(`{},%q:"info"`, protocol.MetaLogLevel))
	told := func() int {
		t.Helper()
		return strings.Count(textOf(t, quiet.tool("a__heard", `{}`, "").Result), "logging/setLevel")
	}
	quiet.tool("a__echo", `{"text":"x"}`, "")
	if n := told(); n != 0 {
		t.Errorf("told %d times before anybody wanted a log", n)
	}
	loud.tool("a__echo", `{"text":"x"}`, "")
	loud.tool("a__echo", `{"text":"x"}`, "")
	if n := told(); n != 1 {
		t.Errorf("told %d times for two calls with a level", n)
	}
	r.connect("", `{}`).request("logging/setLevel", `{"level":"error"}`)
	loud.tool("a__echo", `{"text":"x"}`, "")
	if n := told(); n != 3 {
		t.Errorf("told %d times, once more by a session and then for a call", n)
	}
}
