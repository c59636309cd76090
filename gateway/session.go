// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// maxInFlight bounds the requests of one session that run at the same time.
const maxInFlight = 1024

// Raw is JSON text.
type Raw = protocol.Raw

// An outlet is a way to a client. It never blocks on a client that doesn't
// read: push reports false for a message that could not be taken.
type outlet interface {
	push(m *protocol.Message) bool
}

// A Session is one client's conversation with a view of the gateway. It is safe
// for concurrent use.
type Session struct {
	id        string
	principal string // who the client is, as authenticated; sessions are bound to it
	gateway   *Gateway
	view      view
	own       outlet // for what belongs to no request
	guest     bool   // as long as one request, and no longer
	holder    string // of processes that servers have for it, where each client has one
	holds     bool   // that it is its holder alone, so that they end with it
	life      context.Context
	end       context.CancelCauseFunc

	mu       sync.Mutex // guards all below
	greeted  bool
	hello    chan struct{} // closed at the end of the handshake that is under way; nil when none is
	helloID  protocol.ID   // of its request
	revision protocol.Revision
	caps     Raw                                     // of the client; nil until it declared some
	level    string                                  // of log messages; empty until the client sets it
	running  map[protocol.ID]context.CancelCauseFunc // the client's requests
	asked    map[protocol.ID]*question               // of servers to it
	nextAsk  uint64
	deaf     bool // the client has closed its side, and answers nothing
	active   int  // requests that run, or whose answer is being handed over

	idle *signal // fires when active has changed
}

// errEnded is the cause of a session's end.
var errEnded = errors.New("the session has ended")

// open starts a session. The outlet is for messages that belong to no request.
func (g *Gateway) open(v view, principal string, own outlet) *Session {
	s := g.newSession(v, principal, own)
	s.holder, s.holds = rand.Text(), true
	g.keep(s)
	return s
}

// keep has a session hear of news, and of its principal's end, which is also that of
// what servers have for its token.
func (g *Gateway) keep(s *Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions[s.id] = s
	if s.guest {
		g.tokens[s.holder] = s.principal
	}
}

// newSession makes a session that nobody knows yet.
func (g *Gateway) newSession(v view, principal string, own outlet) *Session {
	s := &Session{
		id: rand.Text(), principal: principal, gateway: g, view: v, own: own,
		running: make(map[protocol.ID]context.CancelCauseFunc),
		asked:   make(map[protocol.ID]*question),
		idle:    newSignal(),
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	return s
}

// close ends the session: its requests are cancelled, its subscriptions ended.
func (s *Session) close() {
	s.gateway.mu.Lock()
	delete(s.gateway.sessions, s.id)
	s.gateway.mu.Unlock()
	s.end(&source.CancelError{Reason: errEnded.Error()})
	for _, u := range s.gateway.all() {
		u.sharer.leave(s)
		if s.holds {
			u.release(s.holder)
		}
	}
}

// EndSessions ends the sessions whose principal is named, calls of it that wait to
// be taken up, and what servers have for it alone.
func (g *Gateway) EndSessions(named func(principal string) bool) {
	g.parleys.endIf(func(p *parley) bool { return named(p.principal) })
	for _, s := range g.allSessions() {
		if named(s.principal) {
			s.close()
		}
	}
	g.mu.Lock()
	var gone []string
	for holder, principal := range g.tokens {
		if named(principal) {
			gone = append(gone, holder)
			delete(g.tokens, holder)
		}
	}
	g.mu.Unlock()
	for _, holder := range gone {
		for _, u := range g.all() {
			u.release(holder)
		}
	}
}

// Sessions returns how many clients there are.
func (g *Gateway) Sessions() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return len(g.sessions)
}

func (g *Gateway) allSessions() []*Session {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return slices.Collect(maps.Values(g.sessions))
}

// receive takes one message of the client. What it leads to goes to out; a
// request is answered there exactly once, unless the client cancels it.
func (s *Session) receive(m *protocol.Message, out outlet) {
	switch {
	case m.IsResponse():
		s.answered(m)
	case m.IsNotification():
		s.told(m)
	default:
		s.begin(m, out)
	}
}

// begin starts a request. It is known before begin returns, so that a
// cancellation that follows finds it.
func (s *Session) begin(m *protocol.Message, out outlet) {
	if run := s.prepare(m, out); run != nil {
		go run() // ends with the request, at the latest when the session does
	}
}

// serveHere runs a request in the caller's goroutine.
func (s *Session) serveHere(m *protocol.Message, out outlet) {
	if run := s.prepare(m, out); run != nil {
		run()
	}
}

// prepare takes a request in and returns what runs it, nil when it was refused.
func (s *Session) prepare(m *protocol.Message, out outlet) (run func()) {
	if s.gateway.is(stops) {
		out.push(FailedRequest(m, "").Answer(refusal()))
		return nil
	}
	ctx, cancel := context.WithCancelCause(s.life)
	if reason := s.admit(m, cancel); reason != "" {
		cancel(nil)
		out.push(protocol.NewError(m.ID, protocol.Errorf(protocol.CodeInvalidRequest, "%s", reason)))
		return nil
	}
	return func() {
		defer cancel(nil)
		s.serve(ctx, m, out)
	}
}

// admit takes a request in, or says why not.
func (s *Session) admit(m *protocol.Message, cancel context.CancelCauseFunc) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running[m.ID] != nil:
		return "a request with this id is running"
	case len(s.running) >= maxInFlight:
		return "too many requests of this session are running"
	}
	if m.Method == protocol.MethodInitialize && s.hello == nil {
		s.hello, s.helloID = make(chan struct{}), m.ID
	}
	s.running[m.ID] = cancel
	s.active++
	return ""
}

// serve answers one request.
func (s *Session) serve(ctx context.Context, m *protocol.Message, out outlet) {
	result, err := s.handle(ctx, m, out)
	s.mu.Lock()
	delete(s.running, m.ID)
	s.mu.Unlock()
	wanted := ctx.Err() == nil
	defer s.handedOver()
	switch {
	case s.life.Err() != nil:
		r := FailedRequest(m, "")
		r.Identity = s.view.identity()
		out.push(r.Answer(&source.Failure{
			Code:    source.GatewayEnded,
			Message: errEnded.Error() + " during the call; it is not known whether that was done",
			Fix:     "look whether it was before calling again",
		}))
	case !wanted:
		if c, ok := out.(interface{ giveUp(protocol.ID) }); ok {
			c.giveUp(m.ID) // a cancelled request is not answered
		}
	case err != nil:
		out.push(protocol.NewError(m.ID, asError(err)))
	default:
		out.push(protocol.NewResult(m.ID, result))
	}
}

// pause takes a request that only waits for news out of those that are waited for
// at the end of a session, until resume is called.
func (s *Session) pause() (resume func()) {
	s.handedOver()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active++
	}
}

// handedOver is the end of a request, after its answer was pushed.
func (s *Session) handedOver() {
	s.mu.Lock()
	s.active--
	s.mu.Unlock()
	s.idle.fire()
	s.gateway.idle.fire()
}

// handle does what every view has in common and leaves the rest to the view.
func (s *Session) handle(ctx context.Context, m *protocol.Message, out outlet) (Raw, error) {
	x := newExchange(ctx, s, m, out)
	if envelope, _ := protocol.ReadEnvelope(m.Params); envelope != nil && plainMethod(m.Method) {
		x.envelope = envelope // what it lacks is refused there
		return s.stateless(ctx, x)
	}
	switch m.Method {
	case protocol.MethodPing:
		return Raw("{}"), nil
	case protocol.MethodInitialize:
		defer s.helloOver(m.ID)
		return s.initialize(ctx, m)
	}
	if !s.awaitHello(ctx) {
		return nil, notGreeted(m.Method)
	}
	if !plainMethod(m.Method) {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "method not found: %.60q", m.Method)
	}
	return s.view.request(ctx, x)
}

// awaitHello reports whether the handshake was made. One that is under way is
// waited for, since a client on a pipe may send on without waiting.
func (s *Session) awaitHello(ctx context.Context) bool {
	s.mu.Lock()
	greeted, hello := s.greeted, s.hello
	s.mu.Unlock()
	if greeted || hello == nil {
		return greeted
	}
	select {
	case <-hello:
	case <-ctx.Done():
	}
	return s.isGreeted()
}

// isGreeted reports whether the handshake was made.
func (s *Session) isGreeted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.greeted
}

// helloOver ends the handshake that a request began; one that failed may be
// made again.
func (s *Session) helloOver(id protocol.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hello != nil && s.helloID == id {
		close(s.hello)
		s.hello = nil
	}
}

// notGreeted refuses a request before initialize. A client that probes for the
// era without a handshake learns by the code that this server has one.
func notGreeted(method string) error {
	if method == protocol.MethodDiscover {
		return protocol.Errorf(protocol.CodeMethodNotFound, "method not found: %s (it needs _meta %q)",
			method, protocol.MetaRevision)
	}
	return protocol.Errorf(protocol.CodeInvalidRequest, "%s before initialize", method)
}

// initialize is the handshake; it happens once.
func (s *Session) initialize(ctx context.Context, m *protocol.Message) (Raw, error) {
	params, err := protocol.ParseObject(m.Params)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "initialize without params")
	}
	wants, err := protocol.Text(params.Get("protocolVersion"))
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "initialize without a protocolVersion")
	}
	if s.isGreeted() {
		return nil, protocol.Errorf(protocol.CodeInvalidRequest, "initialize was done before")
	}
	result, revision, err := s.view.initialize(ctx, protocol.Revision(wants))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.greeted, s.revision = true, revision
	if caps := params.Get("capabilities"); caps.Kind() == '{' {
		s.caps = caps
	}
	return result, nil
}

// told takes a notification of the client. Only what the specification names as
// one is: a server that doesn't look at the id would take a tools/call without
// one for a call, past every decision.
func (s *Session) told(m *protocol.Message) {
	s.mu.Lock()
	greeted := s.greeted || s.hello != nil
	s.mu.Unlock()
	switch {
	case m.Method == protocol.NoteCancelled:
		s.cancel(m.Params) // also of a client without a handshake
	case !greeted || !strings.HasPrefix(m.Method, "notifications/") || !plainMethod(m.Method):
	case m.Method == protocol.NoteProgress:
		s.progressed(m.Params)
	default:
		s.view.notification(s, m)
	}
}

// plainMethod reports whether a method is a name that every server reads the
// same way: none that becomes tools/call when it is trimmed or its case changed.
func plainMethod(method string) bool {
	for _, r := range method {
		letter := ('a' <= r && r <= 'z') || ('A' <= r && r <= 'Z') || ('0' <= r && r <= '9')
		if !letter && !strings.ContainsRune("/_-.$:", r) {
			return false
		}
	}
	for _, guarded := range []string{protocol.MethodToolsCall, protocol.MethodToolsList, protocol.MethodInitialize} {
		if method != guarded && strings.EqualFold(method, guarded) {
			return false
		}
	}
	return true
}

// cancel ends a running request.
func (s *Session) cancel(params Raw) {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return
	}
	id, err := protocol.ParseID(obj.Get("requestId"))
	if err != nil || id.IsZero() {
		return
	}
	reason, _ := protocol.Text(obj.Get("reason")) // absent is empty
	s.mu.Lock()
	cancel := s.running[id]
	s.mu.Unlock()
	if cancel != nil {
		cancel(&source.CancelError{Reason: reason})
	}
}

// tell sends a notification that belongs to no request.
func (s *Session) tell(method string, params Raw) {
	if s.isGreeted() {
		s.own.push(protocol.NewNotification(method, params))
	}
}

// can reports whether the client declared a capability.
func (s *Session) can(capability string) bool {
	return hasMember(s.capabilities(), capability)
}

// capabilities are what the client declared in its handshake.
func (s *Session) capabilities() Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}
