// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxLine is the longest message that clients take, in bytes.
const maxLine = 16 << 20

// A client is an MCP client that records every byte that it gets.
type client struct {
	t    *testing.T
	said io.Writer            // what comes from garra
	send func(message string) // sends a message
	wait func()               // until nothing more comes

	mu      sync.Mutex // guards both below
	last    int
	waiting map[int]chan string // for answers, by id
}

// greet makes the handshake.
func (c *client) greet() *client {
	c.t.Helper()
	c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},`+
		`"clientInfo":{"name":"leak","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// request makes a request and returns the message that answers it.
func (c *client) request(method, params string) string {
	c.t.Helper()
	answer := make(chan string, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	c.waiting[id] = answer
	c.mu.Unlock()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	select {
	case text := <-answer:
		return text
	case <-time.After(patience):
		c.t.Fatalf("%s was not answered: …%s", method, params[max(0, len(params)-80):])
		return ""
	}
}

// call calls a tool.
func (c *client) call(tool string, arguments map[string]any) string {
	c.t.Helper()
	params, err := json.Marshal(map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.request("tools/call", string(params))
}

// hear takes lines, of which some are messages and some are events with one.
func (c *client) hear(from io.Reader) {
	lines := bufio.NewScanner(io.TeeReader(from, c.said))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "data:"))
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(line), &m) != nil || m.ID == nil {
			continue
		}
		if m.Method != "" {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, m.ID))
			continue
		}
		var id int
		_ = json.Unmarshal(m.ID, &id) // another id is nobody's
		c.mu.Lock()
		answer := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if answer != nil {
			answer <- line // has room for it
		}
	}
}

// connect opens a session over HTTP, and the stream of it.
func (g *gateway) connect(path, token string) *client {
	g.t.Helper()
	c := &client{t: g.t, said: g.writer("a client of " + path), waiting: make(map[int]chan string)}
	var reading sync.WaitGroup
	session := ""
	exchange := func(method, body string) {
		url := "http://" + g.address + path
		request, err := http.NewRequestWithContext(g.t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			g.t.Error(err)
			return
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer " + token, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25",
		} {
			if value != "" && (session != "" || !strings.HasPrefix(name, "Mcp-")) {
				request.Header.Set(name, value)
			}
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			g.t.Error(err)
			return
		}
		if id := response.Header.Get("Mcp-Session-Id"); session == "" {
			session = id // of the answer to the first message, before another is sent
		}
		fmt.Fprintf(c.said, "%s %v\n", response.Status, response.Header)
		reading.Add(1)
		go func() { // ends with the answer, or the session; wait waits for it
			defer reading.Done()
			defer response.Body.Close()
			c.hear(response.Body)
		}()
	}
	c.send = func(message string) { exchange(http.MethodPost, message) }
	c.wait = func() {
		exchange(http.MethodDelete, "")
		reading.Wait()
	}
	c.greet()
	exchange(http.MethodGet, "")
	return c
}

// stdio starts `garra stdio`.
func (h *home) stdio(name string, args ...string) *client {
	h.t.Helper()
	cmd := h.command(append([]string{"stdio"}, args...)...)
	in, out := pipes(h.t, cmd)
	cmd.Stderr = h.writer(name + ", its standard error")
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	c := &client{t: h.t, said: h.writer(name), waiting: make(map[int]chan string)}
	read := make(chan struct{})
	go func() { // ends with the process's output; wait waits for it
		defer close(read)
		c.hear(out)
	}()
	var sending sync.Mutex
	c.send = func(message string) {
		sending.Lock()
		defer sending.Unlock()
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			h.t.Errorf("%s: %v", name, err)
		}
	}
	c.wait = func() {
		in.Close()
		<-read
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("%s: %v", name, err)
		}
	}
	return c.greet()
}

func pipes(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}
