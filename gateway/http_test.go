// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
)

// A browserless client over HTTP, one request at a time.
type httpClient struct {
	t       testing.TB
	url     string
	session string
	who     string
}

// serveHTTP serves the rig's gateway; the header X-Who names the principal.
func (r *rig) serveHTTP() *httptest.Server {
	s := httptest.NewServer(r.gateway.HTTP(func(req *http.Request) string { return req.Header.Get("X-Who") }))
	r.t.Cleanup(s.Close)
	return s
}

func (c *httpClient) do(ctx context.Context, method, body string, headers ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-Who", c.who)
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func (c *httpClient) post(body string, headers ...string) (int, string) {
	c.t.Helper()
	resp := c.do(c.t.Context(), http.MethodPost, body, headers...)
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return resp.StatusCode, string(data)
}

func (r *rig) connectHTTP(url, capabilities string) *httpClient {
	r.t.Helper()
	c := &httpClient{t: r.t, url: url, who: "ann"}
	c.initialize(capabilities)
	return c
}

// initialize makes the handshake.
func (c *httpClient) initialize(capabilities string) {
	c.t.Helper()
	status, body := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
		`{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `}}`)
	if status != 200 || c.session == "" {
		c.t.Fatalf("initialize: %d %s", status, body)
	}
	if status, body := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != 202 {
		c.t.Fatalf("initialized: %d %s", status, body)
	}
}

func toolCall(id int, name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, id, callParams(name, arguments))
}

// progressCall is call 3, which reports progress under the token 7.
func progressCall(arguments string) string {
	return `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":` +
		`{"name":"progress","arguments":` + arguments + `,"_meta":{"progressToken":7}}}`
}

// events reads server-sent events as they come: ids and data.
func events(t *testing.T, body io.Reader) func() (id, data string) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<22)
	return func() (id, data string) {
		t.Helper()
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "id: "):
				id = line[4:]
			case strings.HasPrefix(line, "data: "):
				data = line[6:]
			case line == "" && data != "":
				return id, data
			}
		}
		return "", ""
	}
}

func TestHTTPRefusesWhatIsNoMCP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	url := r.serveHTTP().URL
	c := r.connectHTTP(url+"/mcp", `{}`)
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"no session":         {ping, []string{"Mcp-Session-Id", ""}, 400},
		"unknown session":    {ping, []string{"Mcp-Session-Id", "x"}, 404},
		"another principal":  {ping, []string{"X-Who", "bob"}, 404},
		"text/plain":         {ping, []string{"Content-Type", "text/plain"}, 415},
		"accepts html":       {ping, []string{"Accept", "text/html"}, 406},
		"no JSON":            {`{"jsonrpc"`, nil, 400},
		"no message":         {`{}`, nil, 400},
		"batch":              {"[" + ping + "]", nil, 400},
		"doubled member":     {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, nil, 400},
		"unknown revision":   {ping, []string{"MCP-Protocol-Version", "1999-01-01"}, 400},
		"known revision":     {ping, []string{"MCP-Protocol-Version", "2025-06-18"}, 200},
		"only JSON accepted": {ping, []string{"Accept", "application/json"}, 200},
		"only SSE accepted":  {ping, []string{"Accept", "text/event-stream"}, 200},
	} {
		if status, body := (&httpClient{t, c.url, c.session, c.who}).post(tt.body, tt.headers...); status != tt.status {
			t.Errorf("%s: %d %s, want %d", name, status, body, tt.status)
		}
	}
	if status, _ := (&httpClient{t: t, url: url + "/mcp/nobody"}).post(ping); status != 404 {
		t.Errorf("an unknown server: %d", status)
	}
	if status, _ := (&httpClient{t, url + "/mcp/a", c.session, c.who}).post(ping); status != 404 {
		t.Errorf("a session on another server's path: %d", status)
	}
}

func TestHTTPAnswersJSONOrAStream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{}`)
	resp := c.do(t.Context(), http.MethodPost, toolCall(2, "echo", `{"text":"x"}`))
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("a plain answer comes as %s", kind)
	}
	resp = c.do(t.Context(), http.MethodPost,
		progressCall(`{"n":2,"ms":1}`))
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("an answer with progress comes as %s", kind)
	}
	next := events(t, resp.Body)
	for range 2 {
		if _, data := next(); !strings.Contains(data, `"progressToken":7`) {
			t.Errorf("got %s", data)
		}
	}
	if _, data := next(); !strings.Contains(data, `"id":3`) {
		t.Errorf("got %s", data)
	}
	if id, data := next(); data != "" {
		t.Errorf("the stream goes on with %s %s", id, data)
	}
}

func TestHTTPQuestionsComeOnTheCallsStream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{"sampling":{}}`)
	resp := c.do(t.Context(), http.MethodPost, toolCall(2, "ask_sampling", `{"text":"who?"}`))
	next := events(t, resp.Body)
	_, data := next()
	question, err := protocol.Parse([]byte(data))
	if err != nil || question.Method != "sampling/createMessage" {
		t.Fatalf("got %s: %v", data, err)
	}
	reply := protocol.Raw(`{"role":"assistant","model":"m","content":{"type":"text","text":"me"}}`)
	answer := string(protocol.NewResult(question.ID, reply).Append(nil))
	if status, body := c.post(answer); status != 202 {
		t.Errorf("the answer: %d %s", status, body)
	}
	if _, data := next(); !strings.Contains(data, "me") {
		t.Errorf("got %s", data)
	}
}

func TestHTTPStreamIsResumedBehindTheLastEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	resp := c.do(ctx, http.MethodPost,
		progressCall(`{"n":5,"ms":100}`))
	id, _ := events(t, resp.Body)()
	cancel() // the connection breaks
	resp = c.do(t.Context(), http.MethodGet, "", "Last-Event-Id", id)
	next, seen := events(t, resp.Body), 0
	for {
		_, data := next()
		if strings.Contains(data, `"id":3`) {
			break
		}
		if data == "" {
			t.Fatal("the answer is lost")
		}
		seen++
	}
	if seen != 4 {
		t.Errorf("%d progress notifications after the first, want 4", seen)
	}
	if resp := c.do(t.Context(), http.MethodGet, "", "Last-Event-Id", "99-1"); resp.StatusCode != 400 {
		t.Errorf("an unknown event: %d", resp.StatusCode)
	}
	if resp := c.do(t.Context(), http.MethodGet, "", "Last-Event-Id", "0-7"); resp.StatusCode != 400 {
		t.Errorf("an event that is still to come: %d", resp.StatusCode)
	}
}

func TestOnePrincipalsSessionsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	url := r.serveHTTP().URL + "/mcp"
	bob := &httpClient{t: t, url: url, who: "bob"}
	bob.initialize(`{}`)
	used := r.connectHTTP(url, `{}`)
	used.do(t.Context(), http.MethodGet, "") // a stream that is open
	first := r.connectHTTP(url, `{}`)
	for range 999 {
		r.connectHTTP(url, `{}`)
	}
	ping := `{"jsonrpc":"2.0","id":9,"method":"ping"}`
	for c, want := range map[*httpClient]int{bob: 200, used: 200, first: 404} {
		if status, body := c.post(ping); status != want {
			t.Errorf("%s: %d %s, want %d", c.who, status, body, want)
		}
	}
}

func TestHTTPStandingStreamHearsNewsAndDeleteEndsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp", `{}`)
	resp := c.do(t.Context(), http.MethodGet, "")
	if resp.StatusCode != 200 || resp.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("GET: %d %v", resp.StatusCode, resp.Header)
	}
	next := events(t, resp.Body)
	r.apply(entry("a"), entry("b"))
	for {
		_, data := next()
		if strings.Contains(data, "tools/list_changed") {
			break
		}
		if data == "" {
			t.Fatal("the news never came")
		}
	}
	if resp := c.do(t.Context(), http.MethodDelete, ""); resp.StatusCode != 204 {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
	for {
		if _, data := next(); data == "" {
			break // the stream has ended
		}
	}
	if status, _ := c.post(`{"jsonrpc":"2.0","id":9,"method":"ping"}`); status != 404 {
		t.Errorf("after DELETE: %d", status)
	}
	eventually(t, "the session is forgotten", func() bool { return r.gateway.Sessions() == 0 })
}

func TestHTTPCancelledRequestHasNoAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{}`)
	done := make(chan int, 1)
	second := &httpClient{t, c.url, c.session, c.who}
	go func() {
		status, body := second.post(toolCall(5, "sleep", `{"ms":60000}`))
		if body != "" {
			t.Errorf("a cancelled request is answered: %s", body)
		}
		done <- status
	}()
	deadline := time.After(patience)
	for {
		c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		select {
		case status := <-done:
			if status != 202 {
				t.Errorf("status %d", status)
			}
			return
		case <-deadline:
			t.Fatal("the cancelled request hangs")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestHTTPBatchesBelongToOneRevision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := &httpClient{t: t, url: r.serveHTTP().URL + "/mcp", who: "ann"}
	c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}`)
	status, body := c.post(`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`)
	if status != 200 || !strings.Contains(body, `"id":2`) || !strings.Contains(body, `"id":3`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestHTTPAnswersInTheFormThatIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	url := r.serveHTTP().URL + "/mcp"
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`
	c := &httpClient{t: t, url: url, who: "ann"}
	status, body := c.post(hello, "Accept", "text/event-stream")
	if status != 200 || !strings.HasPrefix(body, "event: ") {
		t.Errorf("%d %s", status, body)
	}
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	pings := `[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`
	_, body = c.post(pings, "Accept", "application/json")
	if !strings.HasPrefix(body, "[{") || !strings.Contains(body, `"id":2`) || !strings.Contains(body, `"id":3`) {
		t.Errorf("%s", body)
	}
	if _, body := c.post(pings[:strings.Index(pings, "},")+1]+"]", "Accept", "application/json"); body[0] != '[' {
		t.Errorf("a batch of one: %s", body)
	}
	if status, body := c.post(pings + " x"); status != 400 {
		t.Errorf("a batch and more: %d %s", status, body)
	}
}

func TestEndSessionsOfAPrincipal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	url := r.serveHTTP().URL + "/mcp"
	c := r.connectHTTP(url, `{}`)
	r.gateway.EndSessions(func(p string) bool { return p == "bob" })
	if status, _ := c.post(`{"jsonrpc":"2.0","id":9,"method":"ping"}`); status != 200 {
		t.Errorf("another's session ended: %d", status)
	}
	r.gateway.EndSessions(func(p string) bool { return p == "ann" })
	if status, _ := c.post(`{"jsonrpc":"2.0","id":9,"method":"ping"}`); status != 404 {
		t.Errorf("the session lives: %d", status)
	}
}

func TestHTTPClientWithoutAStreamIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{"sampling":{}}`)
	status, body := c.post(toolCall(2, "ask_sampling", `{"text":"who?"}`), "Accept", "application/json")
	if status != 200 || !strings.Contains(body, "no open stream") {
		t.Errorf("%d %s", status, body)
	}
}
