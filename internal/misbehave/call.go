// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
)

// A call is one tools/call.
type call struct {
	*server
	ctx    context.Context // ends when the client cancels the call
	cancel context.CancelFunc
	id     json.RawMessage
	params json.RawMessage
	args   map[string]json.RawMessage
	token  json.RawMessage // for progress, or nil
}

// callTool runs a tool.
func (s *server) callTool(m *message) {
	var params struct {
		Name      string                     `json:"name"`
		Arguments map[string]json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		s.out.fail(m.ID, invalidParams, err.Error())
		return
	}
	t := s.find(params.Name)
	if t == nil {
		s.out.fail(m.ID, invalidParams, "Unknown tool: "+params.Name)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{
		server: s, ctx: ctx, cancel: cancel,
		id: m.ID, params: m.Params, args: params.Arguments, token: params.Meta.ProgressToken,
	}
	s.mu.Lock()
	s.running[string(c.id)] = c
	s.mu.Unlock()
	if t.serial {
		c.run(t)
		return
	}
	go c.run(t) // ends with the tool; nobody waits, the process may end before
}

// run runs the tool and answers.
func (c *call) run(t *tool) {
	result := t.run(c)
	c.mu.Lock()
	delete(c.running, string(c.id))
	c.mu.Unlock()
	c.cancel()
	if result == "" {
		return
	}
	id := c.id
	switch {
	case c.opts.noNewlineFlood != 0:
		c.out.flood(c.opts.noNewlineFlood)
		return
	case c.opts.wrongID:
		id = json.RawMessage(`"nobody-asked-with-this"`)
	case c.opts.answerTwice:
		c.out.reply(id, result)
	}
	c.out.reply(id, result)
}

// cancel is notifications/cancelled.
func (s *server) cancel(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.running[string(p.RequestID)]; c != nil {
		c.cancel()
		return
	}
	s.out.note("nothing to cancel: " + string(p.RequestID))
}

// ask sends the client a request and returns its answer as a tool's result.
func (c *call) ask(method, params string) string {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.nextID++
	id := strconv.Quote(fmt.Sprintf("ask-%d", c.nextID))
	c.asked[id] = answer
	c.mu.Unlock()
	c.out.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	select {
	case m := <-answer:
		if m.Error != nil {
			return toolError("the client's error: " + string(m.Error))
		}
		return textResult(string(m.Result))
	case <-c.ctx.Done():
		return ""
	}
}

// answered is the client's answer to a request of ask's.
func (s *server) answered(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.asked[string(m.ID)]; answer != nil {
		delete(s.asked, string(m.ID))
		answer <- *m // has room for it
	}
}

// progressed is the client's progress with a request of askProgress.
func (s *server) progressed(params json.RawMessage) {
	var p struct{ ProgressToken string }
	_ = json.Unmarshal(params, &p) // no token, then, which nobody waits for
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.waiting[p.ProgressToken]; waiting != nil {
		delete(s.waiting, p.ProgressToken)
		waiting <- params // has room for it
	}
}

// text returns an argument that is a string, or "".
func (c *call) text(name string) string {
	var text string
	_ = json.Unmarshal(c.args[name], &text)
	return text
}

// number returns an argument that is an integer, or 0.
func (c *call) number(name string) int {
	var n int
	_ = json.Unmarshal(c.args[name], &n)
	return n
}

// mark writes the file that tells of a cancelled call.
func (c *call) mark() {
	c.out.note("cancelled: " + string(c.id))
	if file := c.text("marker"); file != "" {
		if err := os.WriteFile(file, []byte("cancelled\n"), 0o600); err != nil {
			c.out.note(err.Error())
		}
	}
}
