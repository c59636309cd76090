// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package rig

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
)

// A Conversation carries an MCP client's messages: over a process's standard
// input and output, or over HTTP. It is safe for concurrent use.
type Conversation interface {
	// Ask sends a request and waits for its answer; noted, unless nil, is called
	// for every notification that comes meanwhile. It fails when the
	// conversation ends before.
	Ask(method, params string, noted func()) (*protocol.Message, error)
	// Tell sends a notification.
	Tell(method, params string) error
	// HangUp ends the conversation, as a well-behaved client does.
	HangUp() error
}

// A Client is an MCP client that sees every message as it was written.
type Client struct {
	T testing.TB
	Conversation
	Hello protocol.Raw // the answer to initialize
}

// Greeting is what a client of the tests says first, with its capabilities.
func Greeting(capabilities string) string {
	return `{"protocolVersion":"2025-11-25","capabilities":` + capabilities +
		`,"clientInfo":{"name":"e2e","version":"1"}}`
}

// Greet makes the handshake, as a client without capabilities.
func Greet(t testing.TB, c Conversation) *Client {
	t.Helper()
	return GreetWith(t, c, Greeting(`{}`))
}

// GreetWith makes the handshake with given parameters.
func GreetWith(t testing.TB, c Conversation, params string) *Client {
	t.Helper()
	m, err := c.Ask(protocol.MethodInitialize, params, nil)
	if err != nil {
		t.Fatalf("initialize: %v", err)
	}
	if m.Error != nil {
		t.Fatalf("initialize: %s", m.Error)
	}
	if err := c.Tell(protocol.NoteInitialized, `{}`); err != nil {
		t.Fatalf("initialized: %v", err)
	}
	return &Client{t, c, m.Result}
}

// Request makes a request that must be answered, be it with an error.
func (c *Client) Request(method, params string) *protocol.Message {
	c.T.Helper()
	m, err := c.Ask(method, params, nil)
	if err != nil {
		c.T.Fatalf("%s: %v", method, err)
	}
	return m
}

// Call calls a tool; arguments is a JSON object.
func (c *Client) Call(tool, arguments string) *protocol.Message {
	c.T.Helper()
	return c.Request(protocol.MethodToolsCall, CallParams(tool, arguments))
}

// CallParams are the parameters of a call of a tool; arguments is a JSON object.
func CallParams(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

// An Answered is what came of a request that was made in the background.
type Answered struct {
	Message *protocol.Message
	Err     error
}

// Hang calls a tool that reports progress without end, and returns once it
// does. Its answer, if it ever has one, comes to the channel.
func (c *Client) Hang(prefix string) <-chan Answered {
	c.T.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":{"n":1000000,"ms":100},"_meta":{"progressToken":"hang"}}`,
		prefix+"progress")
	running, done := make(chan struct{}), make(chan Answered, 1)
	go func() { // ends with the answer, or with the conversation
		m, err := c.Ask(protocol.MethodToolsCall, params, sync.OnceFunc(func() { close(running) }))
		done <- Answered{m, err}
	}()
	select {
	case <-running:
	case a := <-done:
		c.T.Fatalf("the call did not hang: %+v", a)
	case <-time.After(Patience):
		c.T.Fatal("the call does not run")
	}
	return done
}

// Text calls a tool that must answer with a text.
func (c *Client) Text(tool, arguments string) string {
	c.T.Helper()
	m := c.Call(tool, arguments)
	text, ok := TextOf(m)
	if !ok {
		c.T.Fatalf("%s: no text in %s %s", tool, m.Result, m.Error)
	}
	return text
}

// TextOf returns the text of a result that is no error.
func TextOf(m *protocol.Message) (text string, ok bool) {
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.IsError || len(r.Content) == 0 {
		return "", false
	}
	return r.Content[0].Text, true
}

// FailureOf returns the code under which garra describes a failure of a call;
// empty when it is none of garra's.
func FailureOf(m *protocol.Message) string {
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

// List asks for all pages of a list; an error is the end of them.
func (c *Client) List(method string) []*protocol.Message {
	c.T.Helper()
	var pages []*protocol.Message
	for params := `{}`; len(pages) < maxPages; {
		page := c.Request(method, params)
		pages = append(pages, page)
		var r struct{ NextCursor *string }
		if page.Error != nil || json.Unmarshal(page.Result, &r) != nil || r.NextCursor == nil {
			return pages
		}
		params = fmt.Sprintf(`{"cursor":%s}`, protocol.Quote(*r.NextCursor))
	}
	c.T.Fatalf("%s has more than %d pages", method, maxPages)
	return nil
}

// Items returns the elements of all pages under a key.
func (c *Client) Items(method, key string) []protocol.Raw {
	c.T.Helper()
	var list []protocol.Raw
	for _, page := range c.List(method) {
		object, err := protocol.ParseObject(page.Result)
		if err != nil {
			continue // an error: the server has no such list
		}
		elements, err := protocol.Elements(object.Get(key))
		if err != nil {
			c.T.Fatalf("%s: %v", method, err)
		}
		list = append(list, elements...)
	}
	return list
}

// Tools returns the names of all tools.
func (c *Client) Tools() []string {
	c.T.Helper()
	var names []string
	for _, tool := range c.Items(protocol.MethodToolsList, "tools") {
		names = append(names, Member(c.T, tool, "name"))
	}
	return names
}

// Member returns a text in a JSON object.
func Member(t testing.TB, raw protocol.Raw, name string) string {
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
