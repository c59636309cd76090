// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/garraia/garra/protocol"
)

const sampled = `{"role":"assistant","model":"m","content":{"type":"text","text":"me"}}`

// reply answers what a server asks a client on a pipe.
func (c *client) reply(question *protocol.Message) {
	c.write(string(protocol.NewResult(question.ID, protocol.Raw(sampled)).Append(nil)))
}

// What runs is answered, with all that it needs of its client; what is new is refused,
// and nothing of it is done.
func TestDrain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	busy, idle := r.connect("a", `{"sampling":{}}`), r.connect("a", `{}`)
	modern := r.modern("/mcp/a", `{}`)
	id := busy.send("tools/call", callParams("ask_sampling", `{"text":"who?"}`))
	question := busy.question("sampling/createMessage")
	left := make(chan int, 1)
	go func() { left <- r.gateway.Drain(t.Context()) }()
	eventually(t, "the idle session has ended", func() bool { return r.gateway.Sessions() == 1 })

	if m := busy.request("tools/call", callParams("echo", `{"text":"x"}`)); failureCode(m) != "gateway.away" {
		t.Errorf("a new call: %s %s", m.Result, m.Error)
	}
	if m := modern.tool("echo", `{"text":"x"}`, ""); failureCode(m) != "gateway.away" {
		t.Errorf("a new call of the stateless era: %s %s", m.Result, m.Error)
	}
	if m := busy.request("tools/list", `{}`); m.Error == nil || failureCode(m) != "gateway.away" {
		t.Errorf("a new list: %s %s", m.Result, m.Error)
	}
	busy.reply(question)
	if m := busy.answer(id); !strings.Contains(string(m.Result), "me") {
		t.Errorf("the call that ran: %s %s", m.Result, m.Error)
	}
	if n := <-left; n != 0 {
		t.Errorf("%d sessions are busy", n)
	}
	if idle.answered("2") {
		t.Error("a session that had asked nothing got an answer")
	}
}

// What has not ended in time is told so, when its session is ended.
func TestDrainEndsWithItsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"))
	c := r.connectHTTP(r.serveHTTP().URL+"/mcp/a", `{}`)
	resp := c.do(t.Context(), http.MethodPost, progressCall(`{"n":1000000,"ms":100}`))
	next := events(t, resp.Body)
	next() // it is under way
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n := r.gateway.Drain(ctx); n != 1 {
		t.Errorf("%d sessions are busy, want 1", n)
	}
	r.gateway.EndSessions(func(string) bool { return true })
	last := ""
	for _, data := next(); data != ""; _, data = next() {
		last = data
	}
	if m, err := protocol.Parse([]byte(last)); err != nil || failureCode(m) != "gateway.ended" {
		t.Errorf("the call that was cut off ends with %s: %v", last, err)
	}
}

// A session over HTTP whose gateway has handed over is gone for what is new; what ran
// ends there, and the answers to its questions reach it.
func TestHandOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.apply(entry("a"), entry("b"))
	url := r.serveHTTP().URL + "/mcp/a"
	busy, idle := r.connectHTTP(url, `{"sampling":{}}`), r.connectHTTP(url, `{}`)
	pipe := r.connect("b", `{"sampling":{}}`)
	resp := busy.do(t.Context(), http.MethodPost, toolCall(2, "ask_sampling", `{"text":"who?"}`))
	next := events(t, resp.Body)
	_, data := next()
	asked, err := protocol.Parse([]byte(data))
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	id := pipe.send("tools/call", callParams("ask_sampling", `{"text":"who?"}`))
	question := pipe.question("sampling/createMessage")
	left := make(chan int, 1)
	go func() { left <- r.gateway.HandOver(t.Context()) }()
	eventually(t, "the idle session has ended", func() bool { return r.gateway.Sessions() == 2 })

	for _, c := range []*httpClient{idle, busy} {
		if status, body := c.post(toolCall(3, "echo", `{"text":"x"}`)); status != http.StatusNotFound {
			t.Errorf("a new call: %d %s", status, body)
		}
	}
	if text := pipe.text("echo", `{"text":"still"}`); text != "still" {
		t.Errorf("a client on a pipe got %q", text)
	}
	answer := string(protocol.NewResult(asked.ID, protocol.Raw(sampled)).Append(nil))
	if status, body := busy.post(answer); status != http.StatusAccepted {
		t.Errorf("the answer to a question: %d %s", status, body)
	}
	if _, data := next(); !strings.Contains(data, "me") {
		t.Errorf("the call that ran: %s", data)
	}
	pipe.reply(question)
	if m := pipe.answer(id); m.Error != nil {
		t.Errorf("the call of the pipe: %s", m.Error)
	}
	if n := <-left; n != 0 {
		t.Errorf("%d sessions are busy", n)
	}
}
