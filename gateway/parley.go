// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	parleyTTL  = 5 * time.Minute // for a client to come back with what it was asked
	parleyHold = time.Minute     // of that, in which others on the same process can't be asked
	maxParleys = 100             // of one principal, and of one server, that wait for their clients
	maxKept    = 1 << 20         // bytes of a result that came while its client was away

	// parleyPrefix tells a requestState of garra's from one of a server's own.
	parleyPrefix = "garra:"
	// inputKey names the one question of an answer of garra's own.
	inputKey = "garra"
)

// A parley is a call of the stateless era to a server that asks in the way of the
// handshake era. What it asks is the call's answer (input_required); the call
// itself goes on, and the client's next request takes it up. It implements
// outlet. It is safe for concurrent use.
type parley struct {
	gateway   *Gateway
	session   *Session // of the request that began it
	principal string
	view      view
	digest    [sha256.Size]byte // of the request
	life      context.Context
	end       context.CancelCauseFunc
	asked     chan *question
	done      chan parleyEnd // takes one
	over      chan struct{}  // closed when the call has ended

	mu   sync.Mutex // guards all below
	out  outlet     // of the request that is open; nil while the client is to come back
	open *question  // what the client was asked
}

// A parleyEnd is what came of a call.
type parleyEnd struct {
	result Raw
	err    error
}

// converse runs a request of the stateless era.
func (s *Session) converse(ctx context.Context, x *exchange) (Raw, error) {
	switch x.method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead:
	default:
		return s.view.request(ctx, x) // no other one can ask
	}
	p, err := s.parleyOf(x)
	if err != nil {
		return nil, err
	}
	return p.next(ctx)
}

// parleyOf begins a call, or finds the one that the request takes up.
func (s *Session) parleyOf(x *exchange) (*parley, error) {
	params, err := x.message.ParamsObject()
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s without params", x.method)
	}
	state, _ := protocol.Text(params.Get("requestState")) // absent is empty
	digest := requestDigest(x.method, params)
	if strings.HasPrefix(state, parleyPrefix) {
		return s.gateway.resume(s, x, state, params.Get("inputResponses"), digest)
	}
	p := &parley{
		gateway: s.gateway, session: s, principal: s.principal, view: s.view, digest: digest, out: x.out,
		asked: make(chan *question), done: make(chan parleyEnd, 1), over: make(chan struct{}),
	}
	p.life, p.end = context.WithCancelCause(context.Background())
	forget := func() bool { return true }
	if !s.guest { // a client on a pipe doesn't come back over another
		forget = context.AfterFunc(s.life, func() { p.end(context.Cause(s.life)) })
	}
	inner := *x
	inner.ctx, inner.out, inner.parley = p.life, p, p
	go func() { // ends with the call, at the latest when the client doesn't come back
		defer close(p.over)
		defer forget()
		defer p.end(nil)
		result, err := s.view.request(p.life, &inner)
		if len(result) > maxKept && p.isParked() {
			result, err = nil, protocol.Errorf(protocol.CodeInternal,
				"the answer of %d bytes was dropped: it came while the client was asked", len(result))
		}
		p.done <- parleyEnd{result, err}
	}()
	return p, nil
}

// same reports whether another call is the same one.
func (p *parley) same(other *parley) bool {
	return p.principal == other.principal && p.view == other.view && p.digest == other.digest
}

// server is the one that asks.
func (p *parley) server() *upstream {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return nil
	}
	return p.open.from
}

// isParked reports whether the client is to come back.
func (p *parley) isParked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out == nil
}

// requestDigest identifies what a request asks for, whichever way it came.
func requestDigest(method string, params *protocol.Object) [sha256.Size]byte {
	bare := protocol.Object{Members: params.Members}
	for _, name := range []string{"_meta", "inputResponses", "requestState"} {
		bare.Delete(name)
	}
	return sha256.Sum256(append([]byte(method+"\x00"), bare.Raw()...))
}

// next waits until the call has ended or its server asks. A client that goes
// meanwhile ends the call.
func (p *parley) next(ctx context.Context) (Raw, error) {
	select {
	case end := <-p.done:
		return end.result, end.err
	case q := <-p.asked:
		return p.park(q)
	case <-ctx.Done():
		p.end(context.Cause(ctx))
		end := <-p.done
		return end.result, end.err
	}
}

// park answers the open request with a question, and waits for the client to come
// back.
func (p *parley) park(q *question) (Raw, error) {
	state := parleyPrefix + rand.Text()
	p.mu.Lock()
	p.out, p.open = nil, q
	p.mu.Unlock()
	if !p.gateway.parleys.put(state, p) {
		full := source.Fail(source.ServerFailed, q.from.name, "it asks too many clients at the same time")
		p.end(full)
		<-p.done
		return nil, full
	}
	ask := protocol.Object{}
	ask.Set("method", protocol.Quote(q.method))
	if q.params != nil {
		ask.Set("params", q.params)
	}
	asks := protocol.Object{}
	asks.Set(inputKey, ask.Raw())
	result := protocol.Object{}
	result.Set("resultType", Raw(`"input_required"`))
	result.Set("inputRequests", asks.Raw())
	result.Set("requestState", protocol.Quote(state))
	return result.Raw(), nil
}

// ask takes a question of the server to the client, once the request that is open
// can be answered with it.
func (p *parley) ask(ctx context.Context, x *exchange, q *question) (Raw, error) {
	if capability, ok := askable(q.method); !ok || !x.can(capability) {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client can't be asked %s", q.method)
	}
	q.answer = make(chan *protocol.Message, 1)
	select {
	case p.asked <- q:
	case <-ctx.Done():
	case <-p.life.Done():
	}
	select {
	case a := <-q.answer:
		return a.Result, nil
	case <-ctx.Done():
	case <-p.life.Done():
	}
	return nil, protocol.Errorf(protocol.CodeInternal, "the client did not answer")
}

// push implements outlet: while the client is away, what is said is lost on it.
func (p *parley) push(m *protocol.Message) bool {
	p.mu.Lock()
	out := p.out
	p.mu.Unlock()
	return out != nil && out.push(m)
}

// resume takes a call up with the client's answer. To another principal, and for
// another request, there is none; and each state is good for one.
func (g *Gateway) resume(
	s *Session, x *exchange, state string, responses Raw, digest [sha256.Size]byte,
) (*parley, error) {
	wanted := &parley{principal: s.principal, view: s.view, digest: digest}
	p := g.parleys.take(state, wanted.same)
	if p == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams,
			"this requestState is of no call that waits: it was used, it expired, or the request is another one")
	}
	p.mu.Lock()
	q := p.open
	p.out, p.open = x.out, nil
	p.mu.Unlock()
	answers, err := protocol.ParseObject(responses)
	if err != nil || answers.Get(inputKey).Kind() != '{' {
		go func() { // ends when next takes it, at the latest with the call
			select {
			case p.asked <- q:
			case <-p.life.Done():
			}
		}()
		return p, nil // it is asked again
	}
	q.answer <- protocol.NewResult(protocol.ID{}, answers.Get(inputKey))
	return p, nil
}

// parleys are the calls that wait for their clients, by state. It is safe for
// concurrent use.
type parleys struct {
	mu    sync.Mutex // guards byKey
	byKey map[string]*parleyWait
}

type parleyWait struct {
	parley *parley
	timer  *time.Timer
	since  time.Time
}

// put keeps a call until it is taken, or ends it when its time is over. It
// reports false when there are too many.
func (ps *parleys) put(state string, p *parley) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byKey == nil {
		ps.byKey = make(map[string]*parleyWait)
	}
	own, server := 0, 0
	for _, w := range ps.byKey {
		if w.parley.principal == p.principal {
			own++
		}
		if w.parley.server() == p.server() {
			server++
		}
	}
	if max(own, server) >= maxParleys {
		return false
	}
	timer := time.AfterFunc(parleyTTL, func() {
		if ps.take(state, func(*parley) bool { return true }) != nil {
			p.end(&source.CancelError{Reason: "the client did not come back"})
		}
	})
	ps.byKey[state] = &parleyWait{p, timer, time.Now()}
	return true
}

// take returns the call of a state that fits, and forgets it.
func (ps *parleys) take(state string, fits func(*parley) bool) *parley {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	w := ps.byKey[state]
	if w == nil || !fits(w.parley) {
		return nil
	}
	w.timer.Stop()
	delete(ps.byKey, state)
	return w.parley
}

// endIf ends the calls that wait and fit.
func (ps *parleys) endIf(fits func(*parley) bool) {
	ps.endAll("the client gave it up", func(w *parleyWait) bool { return fits(w.parley) })
}

// makeWay ends the calls that have waited for long on the process which serves a
// session, and waits for their end: while there are several, none can be asked.
func (ps *parleys) makeWay(server *upstream, s *Session) {
	const why = "the client did not come back, and another one that can be asked needs the server"
	for _, p := range ps.endAll(why, func(w *parleyWait) bool {
		return time.Since(w.since) >= parleyHold && w.parley.server() == server &&
			server.share(w.parley.session) == server.share(s)
	}) {
		<-p.over
	}
}

// endAll ends calls that wait, says why, and returns them.
func (ps *parleys) endAll(why string, fits func(*parleyWait) bool) (list []*parley) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for state, w := range ps.byKey {
		if fits(w) {
			w.timer.Stop()
			w.parley.end(&source.CancelError{Reason: why})
			delete(ps.byKey, state)
			list = append(list, w.parley)
		}
	}
	return list
}
