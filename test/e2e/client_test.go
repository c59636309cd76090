// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
)

// A conversation carries an MCP client's messages: over a process's standard
// input and output, or over HTTP. It is safe for concurrent use.
type conversation interface {
	// ask sends a request and waits for its answer; noted, unless nil, is called
	// for every notification that comes meanwhile. It fails when the
	// conversation ends before.
	ask(method, params string, noted func()) (*protocol.Message, error)
	// tell sends a notification.
	tell(method, params string) error
	// hangUp ends the conversation, as a well-behaved client does.
	hangUp() error
}

// A client is an MCP client that sees every message as it was written.
type client struct {
	t testing.TB
	conversation
	hello protocol.Raw // the answer to initialize
}

// greeting is what a client of the tests says first, with its capabilities.
func greeting(capabilities string) string {
	return `{"protocolVersion":"2025-11-25","capabilities":` + capabilities +
		`,"clientInfo":{"name":"e2e","version":"1"}}`
}

// greet makes the handshake, as a client without capabilities.
func greet(t testing.TB, c conversation) *client {
	t.Helper()
	return greetWith(t, c, greeting(`{}`))
}

// greetWith makes the handshake with given parameters.
func greetWith(t testing.TB, c conversation, params string) *client {
	t.Helper()
	m, err := c.ask(protocol.MethodInitialize, params, nil)
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if m.Error != nil {
		t.Fatalf("initialize: %s", m.Error)
	}
	if err := c.tell(protocol.NoteInitialized, `{}`); err != nil {
		t.Fatalf("initialized: %v", err)
	}
	return &client{t, c, m.Result}
}

// request makes a request that must be answered, be it with an error.
func (c *client) request(method, params string) *protocol.Message {
	c.t.Helper()
	m, err := c.ask(method, params, nil)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return m
}

// call calls a tool; arguments is a JSON object.
func (c *client) call(tool, arguments string) *protocol.Message {
	c.t.Helper()
	return c.request(protocol.MethodToolsCall, callParams(tool, arguments))
}

func callParams(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

// An answered is what came of a request that was made in the background.
type answered struct {
	message *protocol.Message
	err     error
}

// hang calls a tool that reports progress without end, and returns once it
// does. Its answer, if it ever has one, comes to the channel.
func (c *client) hang(prefix string) <-chan answered {
	c.t.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":{"n":1000000,"ms":100},"_meta":{"progressToken":"hang"}}`,
		prefix+"progress")
	running, done := make(chan struct{}), make(chan answered, 1)
	go func() { // ends with the answer, or with the conversation
		m, err := c.ask(protocol.MethodToolsCall, params, sync.OnceFunc(func() { close(running) }))
		done <- answered{m, err}
	}()
	select {
	case <-running:
	case a := <-done:
		c.t.Fatalf("the call did not hang: %+v", a)
	case <-time.After(patience):
		c.t.Fatal("the call does not run")
	}
	return done
}

// text calls a tool that must answer with a text.
func (c *client) text(tool, arguments string) string {
	c.t.Helper()
	m := c.call(tool, arguments)
	text, ok := textOf(m)
	if !ok {
		c.t.Fatalf("%s: no text in %s %s", tool, m.Result, m.Error)
	}
	return text
}

// textOf returns the text of a result that is no error.
func textOf(m *protocol.Message) (text string, ok bool) {
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.IsError || len(r.Content) == 0 {
		return "", false
	}
	return r.Content[0].Text, true
}

// failureOf returns the code under which garra describes a failure of a call;
// empty when it is none of garra's.
func failureOf(m *protocol.Message) string {
	var r struct {
		Meta map[string]struct{ Code string } `json:"_meta"`
		Data map[string]struct{ Code string }
	}
	raw := m.Result
	if m.Error != nil {
		raw = m.Error
	}
	if json.Unmarshal(raw, &r) != nil {
		return ""
	}
	return r.Meta["garra/error"].Code + r.Data["garra/error"].Code
}

// maxPages is more than any server of the tests has.
const maxPages = 100

// list asks for all pages of a list; an error is the end of them.
func (c *client) list(method string) []*protocol.Message {
	c.t.Helper()
	var pages []*protocol.Message
	for params := `{}`; len(pages) < maxPages; {
		page := c.request(method, params)
		pages = append(pages, page)
		var r struct{ NextCursor *string }
		if page.Error != nil || json.Unmarshal(page.Result, &r) != nil || r.NextCursor == nil {
			return pages
		}
		params = fmt.Sprintf(`{"cursor":%s}`, protocol.Quote(*r.NextCursor))
	}
	c.t.Fatalf("%s has more than %d pages", method, maxPages)
	return nil
}

// items returns the elements of all pages under a key.
func (c *client) items(method, key string) []protocol.Raw {
	c.t.Helper()
	var list []protocol.Raw
	for _, page := range c.list(method) {
		object, err := protocol.ParseObject(page.Result)
		if err != nil {
			continue // an error: the server has no such list
		}
		elements, err := protocol.Elements(object.Get(key))
		if err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
		list = append(list, elements...)
	}
	return list
}

// tools returns the names of all tools.
func (c *client) tools() []string {
	c.t.Helper()
	var names []string
	for _, tool := range c.items(protocol.MethodToolsList, "tools") {
		names = append(names, member(c.t, tool, "name"))
	}
	return names
}

// member returns a text in a JSON object.
func member(t testing.TB, raw protocol.Raw, name string) string {
	t.Helper()
	object, err := protocol.ParseObject(raw)
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	text, err := protocol.Text(object.Get(name))
	if err != nil {
		t.Fatalf("%s: %v in %s", name, err, raw)
	}
	return text
}
