// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// An exchange is one request of a client while it runs. To the source it is the
// client: what the server says or asks meanwhile goes out with the request.
type exchange struct {
	ctx     context.Context // of the request; here since source.Client is called from outside of it
	session *Session
	method  string
	params  Raw
	out     outlet
}

var _ source.Client = (*exchange)(nil)

func newExchange(ctx context.Context, s *Session, m *protocol.Message, out outlet) *exchange {
	return &exchange{ctx: ctx, session: s, method: m.Method, params: m.Params, out: out}
}

// call is the request as a source takes it.
func (x *exchange) call(method string, params Raw) *source.Call {
	return &source.Call{Method: method, Params: params, Client: x, Progress: progressToken(params)}
}

// progressToken is the token under _meta; zero when there is none.
func progressToken(params Raw) protocol.ID {
	if params == nil {
		return protocol.ID{}
	}
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return protocol.ID{}
	}
	meta, err := protocol.ParseObject(obj.Get("_meta"))
	if err != nil {
		return protocol.ID{}
	}
	token, err := protocol.ParseID(meta.Get("progressToken"))
	if err != nil {
		return protocol.ID{}
	}
	return token
}

// Session implements source.Client.
func (x *exchange) Session() string { return x.session.id }

// Notify implements source.Client. A log message below the level that the
// client set is dropped.
func (x *exchange) Notify(method string, params Raw) {
	if method == protocol.NoteMessage && !x.session.wantsLog(params) {
		return
	}
	if x.ctx.Err() == nil {
		x.out.push(protocol.NewNotification(method, params))
	}
}

// Ask implements source.Client. It fails at once when the client did not
// declare that it can be asked this, and when nothing leads to it.
func (x *exchange) Ask(ctx context.Context, method string, params Raw) (Raw, error) {
	return x.session.ask(ctx, x.ctx, x.out, protocol.NewRequest(protocol.ID{}, method, params))
}

// ask sends a request to the client and waits for the answer, until either
// context ends.
func (s *Session) ask(ctx, request context.Context, out outlet, m *protocol.Message) (Raw, error) {
	if capability, ok := askable(m.Method); !ok || !s.can(capability) {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client can't be asked %s", m.Method)
	}
	answer := make(chan *protocol.Message, 1)
	s.mu.Lock()
	s.nextAsk++
	m.ID = protocol.NumberID(s.nextAsk)
	s.asked[m.ID] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, m.ID)
		s.mu.Unlock()
	}()
	if !out.push(m) {
		return nil, protocol.Errorf(protocol.CodeInternal, "the client has no open stream to be asked on")
	}
	select {
	case a := <-answer:
		if a.Error != nil {
			return nil, protocol.ParseError(a.Error)
		}
		return a.Result, nil
	case <-request.Done():
	case <-ctx.Done():
	}
	return nil, protocol.Errorf(protocol.CodeInternal, "the client's call has ended")
}

// answered takes the client's answer to a request of a server.
func (s *Session) answered(m *protocol.Message) {
	s.mu.Lock()
	answer := s.asked[m.ID]
	delete(s.asked, m.ID)
	s.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// askable returns the capability that a client must have declared to be asked.
func askable(method string) (capability string, ok bool) {
	switch method {
	case protocol.MethodSampling:
		return "sampling", true
	case protocol.MethodElicit:
		return "elicitation", true
	case protocol.MethodRootsList:
		return "roots", true
	}
	return "", false
}
