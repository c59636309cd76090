// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/garraia/garra/protocol"
)

// A question is a request of a server to a client.
type question struct {
	from     *upstream
	out      outlet // the way to the client
	method   string
	params   Raw
	relation context.Context // of the client's request that it belongs to
	answer   chan *protocol.Message
}

// ask asks the client and waits for the answer, until ctx or the request that
// the question belongs to ends; the client is told that then. It fails at once
// when the client did not declare that it can be asked this, and when nothing
// leads to it.
func (s *Session) ask(ctx context.Context, q *question) (Raw, error) {
	if capability, ok := askable(q.method); !ok || !s.can(capability) {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client can't be asked %s", q.method)
	}
	q.answer = make(chan *protocol.Message, 1)
	s.mu.Lock()
	if s.deaf {
		s.mu.Unlock()
		return nil, errDeaf()
	}
	s.nextAsk++
	id := protocol.NumberID(s.nextAsk)
	s.asked[id] = q
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.asked, id)
		s.mu.Unlock()
	}()
	if !q.out.push(protocol.NewRequest(id, q.method, q.params)) {
		return nil, protocol.Errorf(protocol.CodeInternal, "the client has no open stream to be asked on")
	}
	select {
	case a := <-q.answer:
		if a.Error != nil {
			return nil, protocol.ParseError(a.Error)
		}
		return a.Result, nil
	case <-q.relation.Done():
	case <-ctx.Done():
	}
	o := protocol.Object{}
	o.Set("requestId", id.Raw())
	q.out.push(protocol.NewNotification(protocol.NoteCancelled, o.Raw()))
	return nil, protocol.Errorf(protocol.CodeInternal, "the client's call has ended, or the question was taken back")
}

// deafen notes that the client says nothing more: what it was asked, and will be,
// is answered with an error, since its calls would wait for that.
func (s *Session) deafen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
	for id, q := range s.asked {
		q.answer <- protocol.NewError(id, errDeaf()) // there is room for one, and no other comes
		delete(s.asked, id)
	}
}

// errDeaf is the answer to a question that no client will answer.
func errDeaf() *protocol.Error {
	return protocol.Errorf(protocol.CodeInternal, "the client has closed its side, and can't be asked")
}

// answered takes the client's answer to a question.
func (s *Session) answered(m *protocol.Message) {
	s.mu.Lock()
	q := s.asked[m.ID]
	delete(s.asked, m.ID)
	s.mu.Unlock()
	if q != nil {
		q.answer <- m
	}
}

// progressed passes the client's progress with a question on to who asked it.
func (s *Session) progressed(params Raw) {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return
	}
	token, err := protocol.ParseID(obj.Get("progressToken"))
	if err != nil || token.IsZero() {
		return
	}
	s.mu.Lock()
	var from *upstream
	for _, q := range s.asked {
		if progressToken(q.params) == token {
			from = q.from
		}
	}
	s.mu.Unlock()
	if from != nil {
		from.tell(s, protocol.NoteProgress, params)
	}
}

// askables are the capabilities of clients that can be asked.
func askables() []string { return []string{"sampling", "elicitation", "roots"} }

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
