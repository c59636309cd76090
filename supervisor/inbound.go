// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// told passes a notification of the server on: progress to the call that it
// belongs to, news of the server itself to whoever watches it, and everything
// else to the one client that has calls in flight, if it is one.
func (l *link) told(m *protocol.Message) {
	params, done := l.ear.Load().Hear(m.Method, m.Params)
	if done {
		return
	}
	m.Params = params
	switch m.Method {
	case protocol.NoteProgress:
		l.progress(m)
		return
	case protocol.NoteCancelled:
		l.takenBack(m.Params)
		return
	case protocol.NoteToolsChanged, protocol.NotePromptsChanged, protocol.NoteResourcesChanged,
		protocol.NoteResourceUpdated:
	default:
		if c, _ := l.onlyClient(); c != nil {
			c.client.Notify(m.Method, m.Params)
			return
		}
	}
	if l.hooks.Notification != nil {
		l.hooks.Notification(l.origin, m.Method, m.Params)
	}
}

// progress restores the client's token and passes progress on.
func (l *link) progress(m *protocol.Message) {
	params, err := protocol.ParseObject(m.Params)
	if err != nil {
		return
	}
	token, err := protocol.ParseID(params.Get("progressToken"))
	n, ok := token.Number()
	if err != nil || !ok {
		return
	}
	l.mu.Lock()
	c := l.pending[n]
	if c != nil {
		c.progressed()
	}
	l.mu.Unlock()
	if c == nil || c.client == nil || c.token.IsZero() {
		return
	}
	params.Set("progressToken", c.token.Raw())
	c.client.Notify(m.Method, params.Raw())
}

// onlyClient returns a call in flight when all that are belong to one client,
// and how many clients have any.
func (l *link) onlyClient() (only *call, clients int) {
	found := l.clients()
	if len(found) == 1 {
		for _, c := range found {
			only = c
		}
	}
	return only, len(found)
}

// ask answers a request of the server, in a goroutine of its own: a client may
// take its time, and so may the pipe.
func (l *link) ask(m *protocol.Message) {
	ctx, cancel := context.WithCancel(l.life)
	if why := l.admit(m.ID, cancel); why != "" {
		cancel()
		l.trouble(fmt.Sprintf("%.80q was refused: %s", m.Method, why))
		l.refuse(m.ID, why)
		return
	}
	c, clients := l.onlyClient() // now: the call that caused it may be answered next
	go func() {                  // ends with the client's answer, or with the link
		result, err := l.forwardAsk(ctx, m, c, clients)
		l.mu.Lock()
		delete(l.asked, m.ID)
		l.mu.Unlock()
		takenBack := ctx.Err() != nil
		cancel()
		if takenBack {
			return // a cancelled request is not answered
		}
		if err != nil {
			l.reply(protocol.NewError(m.ID, source.AsProtocolError(err)))
			return
		}
		l.reply(protocol.NewResult(m.ID, result))
	}()
}

// admit takes in a request of the server, or says why not.
func (l *link) admit(id protocol.ID, cancel context.CancelFunc) (why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case len(l.asked) >= maxAsked:
		return fmt.Sprintf("%d requests wait for an answer already", maxAsked)
	case l.asked[id] != nil:
		return "a request with its id waits for an answer already"
	}
	l.asked[id] = cancel
	return ""
}

// refuse answers a request of the server with an error, unless too much waits for the
// server already: who floods and doesn't read gets nothing.
func (l *link) refuse(id protocol.ID, why string) {
	l.post(protocol.NewError(id, protocol.Errorf(protocol.CodeInternal, "%s", why)))
}

// takenBack ends a request of the server that it cancels.
func (l *link) takenBack(params Raw) {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return
	}
	id, err := protocol.ParseID(obj.Get("requestId"))
	if err != nil {
		return
	}
	l.mu.Lock()
	cancel := l.asked[id]
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// forwardAsk takes a server's request to the client whose call caused it. With
// calls of several clients in flight nothing on the wire tells whose it is; it
// then fails at once, since the wrong client must never get it.
func (l *link) forwardAsk(ctx Context, m *protocol.Message, c *call, clients int) (Raw, error) {
	if m.Method == protocol.MethodPing {
		return Raw("{}"), nil
	}
	switch {
	case c != nil:
		return c.client.Ask(ctx, m.Method, m.Params)
	case clients > 1:
		return nil, protocol.Errorf(protocol.CodeInvalidRequest,
			"calls of %d clients are in flight, so garra can't tell whom %s is for; "+
				"sharing: session gives each client its own process", clients, m.Method)
	}
	if l.hooks.Request == nil {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "no client is there to ask")
	}
	return l.hooks.Request(ctx, l.origin, m.Method, m.Params)
}

// reply sends the answer to a server's request.
func (l *link) reply(m *protocol.Message) {
	ctx, cancel := context.WithTimeout(l.life, l.limits.reply)
	defer cancel()
	if _, err := l.send(ctx, m); err != nil && l.life.Err() == nil {
		l.trouble(fmt.Sprintf("the server did not take the answer to %s: %v", m.ID, err))
	}
}
