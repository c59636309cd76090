// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// told passes a notification of the server on: progress to the call that it
// belongs to, a log line to the one client that has calls in flight, everything
// else to whoever watches the server.
func (l *link) told(m *protocol.Message) {
	switch m.Method {
	case protocol.NoteProgress:
		l.progress(m)
		return
	case protocol.NoteCancelled:
		return // garra answers what it was asked; nothing is lost
	case protocol.NoteMessage:
		if c, _ := l.onlyClient(); c != nil {
			c.client.Notify(m.Method, m.Params)
			return
		}
	}
	if l.hooks.Notification != nil {
		l.hooks.Notification(l.server, m.Method, m.Params)
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
	select {
	case l.asked <- struct{}{}:
	default:
		l.trouble(fmt.Sprintf("%.80q was not answered: %d requests wait for an answer already", m.Method, maxAsked))
		return
	}
	go func() { // ends with the client's answer, or with the link
		defer func() { <-l.asked }()
		result, err := l.forwardAsk(l.life, m)
		if err != nil {
			l.reply(protocol.NewError(m.ID, asProtocolError(err)))
			return
		}
		l.reply(protocol.NewResult(m.ID, result))
	}()
}

// forwardAsk takes a server's request to the client whose call caused it. With
// calls of several clients in flight nothing on the wire tells whose it is; it
// then fails at once, since the wrong client must never get it.
func (l *link) forwardAsk(ctx Context, m *protocol.Message) (Raw, error) {
	if m.Method == protocol.MethodPing {
		return Raw("{}"), nil
	}
	c, clients := l.onlyClient()
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
	return l.hooks.Request(ctx, l.server, m.Method, m.Params)
}

// reply sends the answer to a server's request.
func (l *link) reply(m *protocol.Message) {
	ctx, cancel := context.WithTimeout(l.life, l.limits.reply)
	defer cancel()
	if _, err := l.send(ctx, m); err != nil && l.life.Err() == nil {
		l.trouble(fmt.Sprintf("the server did not take the answer to %s: %v", m.ID, err))
	}
}

// asProtocolError makes an answer of whatever went wrong.
func asProtocolError(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	if f, ok := errors.AsType[*source.Failure](err); ok {
		return protocol.Errorf(protocol.CodeInternal, "%s", f.Message)
	}
	return protocol.Errorf(protocol.CodeInternal, "%v", err)
}
