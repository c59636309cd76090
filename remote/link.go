// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

const (
	maxAsked = 64       // requests of one server that wait for a client's answer
	maxNotes = 64       // messages without an answer that wait for one server to take them
	peekable = 64 << 10 // bytes of a dropped message in which its id is looked for
	maxQuote = 200      // bytes of what a server sent in a message for people
)

// A link is JSON-RPC over the wire of one run. Ids of garra's requests are
// numbers of its own, so that clients' ids can't meet. Safe for concurrent use.
type link struct {
	server  string
	hooks   *source.Hooks
	trouble func(message string)
	scrub   func(text string) string // takes what must not be shown out of a text; set before anything is sent
	limits  *limits
	redact  *redact.Set
	wire    wire

	mu      sync.Mutex                         // guards the next five
	pending map[uint64]*call                   // by id
	next    uint64                             // the last id that was used
	failure *source.Failure                    // set once: the link is closed
	fate    *mishap                            // set once: the link takes no more calls, and will end
	asked   map[protocol.ID]context.CancelFunc // requests of the server that wait for an answer

	modern   atomic.Pointer[modern]  // of a server of the stateless era; nil for one with a handshake
	answered atomic.Bool             // a result came
	checking atomic.Bool             // a ping is on its way to a server that may be gone
	notes    chan struct{}           // holds one token for each message that waits for the server
	working  sync.WaitGroup          // what close waits for; joined under mu while failure is nil
	life     Context                 // ends, with a *mishap, when the server can't be spoken to any more
	end      context.CancelCauseFunc // of life
}

var (
	_ inlet          = (*link)(nil)
	_ lifecycle.Link = (*link)(nil)
)

// newLink returns a link without a wire; trouble is told of its oddities.
func newLink(server string, options *Options, trouble func(message string)) *link {
	l := &link{
		server: server, hooks: &options.Hooks, limits: options.limits, scrub: func(text string) string { return text },
		redact:  options.Redact,
		pending: make(map[uint64]*call),
		asked:   make(map[protocol.ID]context.CancelFunc),
		notes:   make(chan struct{}, maxNotes),
	}
	l.trouble = func(message string) { trouble(l.scrub(message)) }
	l.life, l.end = context.WithCancelCause(context.Background())
	return l
}

// Call implements lifecycle.Link.
func (l *link) Call(ctx Context, c *source.Call) (Raw, error) {
	return l.call(ctx, c, budget{timeout: c.Timeout, began: c.Began})
}

// Notify implements lifecycle.Link.
func (l *link) Notify(method string, params Raw) { l.notify(method, params) }

// Answered implements lifecycle.Link.
func (l *link) Answered() bool { return l.answered.Load() }

func (l *link) alive() Context { return l.life }

func (l *link) over(why *mishap) { l.end(why) }

func (l *link) oddity(message string) { l.trouble(message) }

// goes runs a task that close waits for, unless it is too late.
func (l *link) goes(task func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return false
	}
	l.working.Add(1)
	go func() { // ends with life, or before; close waits for it
		defer l.working.Done()
		task()
	}()
	return true
}

// close ends the link: every call in flight, and each later one, gets the
// failure. It tells the server, within the time for that, and returns when
// nothing of the link runs any more.
func (l *link) close(f *source.Failure) {
	l.mu.Lock()
	l.failure = f
	calls := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, c := range calls {
		c.end(reply{err: f, lost: true})
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.limits.bye)
	defer cancel()
	if l.life.Err() == nil && l.modern.Load() == nil { // else the server doesn't know of them, or learns it by itself
		l.cancelAll(ctx, slices.Collect(maps.Keys(calls)))
	}
	l.end(&mishap{failure: f})
	l.wire.close(ctx)
	l.working.Wait()
}

// cancelAll tells the server that nobody waits for these requests any more.
func (l *link) cancelAll(ctx Context, ids []uint64) {
	var sending sync.WaitGroup
	next := make(chan uint64)
	for range min(len(ids), idlePerHost) {
		sending.Go(func() { // ends when there are no more; cancelAll waits for it
			for id := range next {
				note := protocol.NewNotification(protocol.NoteCancelled, cancellation(id, "the session ends"))
				_ = l.wire.send(ctx, &parcel{message: note}) // who doesn't take it loses nothing
			}
		})
	}
	for _, id := range ids {
		next <- id
	}
	close(next)
	sending.Wait()
}

// notify sends a notification without waiting for the server. There is none that
// a server of the stateless era could relate to anything.
func (l *link) notify(method string, params Raw) {
	if l.modern.Load() != nil {
		return
	}
	l.post(protocol.NewNotification(method, params), l.limits.note)
}

// post sends a message without an answer, and doesn't wait. One that the server
// doesn't take in time is lost, and so is one that comes while too many wait.
func (l *link) post(m *protocol.Message, within time.Duration) {
	select {
	case l.notes <- struct{}{}:
	default:
		l.trouble(fmt.Sprintf("the server did not get %s: %d messages wait for it already", nameOf(m), maxNotes))
		return
	}
	posted := l.goes(func() {
		defer func() { <-l.notes }()
		ctx, cancel := context.WithTimeout(l.life, within)
		defer cancel()
		mishap := l.wire.send(ctx, &parcel{message: m})
		if mishap != nil && l.life.Err() == nil {
			l.trouble(fmt.Sprintf("the server did not take %s: %s", nameOf(m), mishap.failure.Message))
			l.heed(mishap)
		}
	})
	if !posted {
		<-l.notes
	}
}

// nameOf is what a message without an answer is called.
func nameOf(m *protocol.Message) string {
	if m.Method != "" {
		return m.Method
	}
	return "the answer to " + m.ID.String()
}

// heed draws the consequences of a mishap for the whole link.
func (l *link) heed(m *mishap) {
	switch {
	case m.ends:
		l.retire(m)
	case m.doubtful:
		l.check()
	}
}

// retire ends the link, once the calls in flight have their answers: what befell
// one request need not be true of those that are on their way. Where the session
// is lost it is soon: most will learn that by themselves, and that they can be
// made again.
func (l *link) retire(m *mishap) {
	l.mu.Lock()
	first := l.fate == nil
	if first {
		l.fate = m
	}
	idle := l.idleLocked()
	l.mu.Unlock()
	switch {
	case idle:
		l.end(m)
	case first && m.forgotten:
		time.AfterFunc(l.limits.grace, func() { l.end(m) })
	}
}

// check pings the server, one ping at a time. What comes of that ends the link
// if it is bad enough; a server that is merely slow is left alone.
func (l *link) check() {
	if l.checking.Swap(true) {
		return
	}
	if !l.goes(l.ping) {
		l.checking.Store(false)
	}
}

// sign asks a server for a sign of life.
func (l *link) sign() *source.Call {
	if l.modern.Load() != nil { // which has no ping
		return &source.Call{Method: protocol.MethodDiscover, Params: eras.DiscoverParams()}
	}
	return &source.Call{Method: protocol.MethodPing}
}

// ping asks until something is certain: each of the connections that were kept
// may turn out to be dead only when it is used.
func (l *link) ping() {
	defer l.checking.Store(false)
	for range idlePerHost + 1 {
		r := l.exchange(l.life, l.sign(), from(l.limits.check))
		if r.mishap == nil || !r.mishap.doubtful {
			return
		}
	}
}

// take implements inlet: a message, or a batch of them.
func (l *link) take(frame []byte, via *call) {
	batch, ok, err := protocol.ParseBatch(frame)
	if !ok || err != nil {
		l.takeOne(frame, via)
		return
	}
	for _, f := range batch {
		l.takeOne(f, via)
	}
}

func (l *link) takeOne(frame []byte, via *call) {
	frame, found := l.redact.JSON(frame)
	if found.Blocked() {
		l.keepBack(frame, found, via)
		return
	}
	m, err := protocol.Parse(frame)
	switch {
	case err != nil:
		l.garbled(frame, err, via)
	case m.IsResponse():
		l.answer(m, via)
	case m.IsNotification():
		l.told(m, via)
	default:
		l.ask(m, via)
	}
}

// garbled takes what is no message: if it was to be an answer, the call need not
// wait for a better one.
func (l *link) garbled(frame []byte, err error, via *call) {
	id, answers := protocol.Peek(frame[:min(len(frame), peekable)])
	n, isNumber := id.Number()
	if isNumber && answers && (via == nil || via.id == n) {
		l.finish(n, reply{err: &source.Failure{
			Code: source.ServerFailed, Server: l.server, Cause: err,
			Message: l.scrub(fmt.Sprintf("the server's answer is no MCP message: %v", err)),
			Fix:     "tell its author, or use another version of it",
		}})
	}
	l.trouble(fmt.Sprintf("what the server sent is no MCP message: %.*q", maxQuote, frame[:min(len(frame), maxQuote)]))
}

// keepBack drops a message with a secret in it that may not leave in any form, and
// fails the call that it answers.
func (l *link) keepBack(frame []byte, found redact.Found, via *call) {
	what := fmt.Sprintf("it holds the secret %q, whose policy is block", found.Names())
	id, answers := protocol.Peek(frame)
	n, isNumber := id.Number()
	answered := isNumber && answers && (via == nil || via.id == n) && l.finish(n, reply{err: &source.Failure{
		Code: source.SecretBlocked, Server: l.server, Message: "the answer was kept back: " + what,
		Fix: "ask for something else",
	}})
	if answered {
		return
	}
	l.trouble("a message was kept back: " + what)
	if !answers && !id.IsZero() {
		l.refuse(id, "the request was kept back: "+what)
	}
}

// tooLarge implements inlet: it fails the call whose answer was dropped, and
// refuses a request that was.
func (l *link) tooLarge(beginning []byte, size int64, via *call) {
	id, isReply := protocol.Peek(beginning[:min(len(beginning), peekable)])
	n, isNumber := id.Number()
	if via != nil && isReply && !isNumber {
		n, isNumber = via.id, true // it came on the call's own stream, and its id comes late
	}
	what := fmt.Sprintf("message of %d bytes is over the limit of %d bytes", size, l.limits.frame)
	failed := isReply && isNumber && (via == nil || via.id == n) && l.finish(n, reply{err: &source.Failure{
		Code: source.FrameTooLarge, Server: l.server, Message: "the answer was dropped: " + what,
		Fix: "ask for less at a time",
	}})
	if failed {
		return
	}
	l.trouble("dropped a " + what)
	if !isReply && !id.IsZero() {
		l.refuse(id, "the request is too large")
	}
}

// answer hands a response to the call that it belongs to. On the stream of a
// call only its own counts. One that nobody waits for any more is dropped.
func (l *link) answer(m *protocol.Message, via *call) {
	r := reply{result: m.Result, answered: true}
	if m.Error != nil {
		r.err = protocol.ParseError(m.Error)
	} else {
		l.answered.Store(true)
	}
	n, isNumber := m.ID.Number()
	if via != nil && m.ID.IsZero() && m.Error != nil {
		n, isNumber = via.id, true // JSON-RPC 2.0, section 5: the id couldn't be told
	}
	mine := isNumber && (via == nil || via.id == n)
	if mine && l.finish(n, r) || mine && l.issued(n) {
		return
	}
	l.trouble(fmt.Sprintf("an answer to %.80s, which nobody asked there: %.*s", m.ID, maxQuote, m.Error))
}

// finish ends the call with that id, if there still is one.
func (l *link) finish(id uint64, r reply) bool {
	l.mu.Lock()
	c := l.pending[id]
	delete(l.pending, id)
	fate := l.fate
	idle := l.idleLocked()
	l.mu.Unlock()
	if fate != nil && idle {
		defer l.end(fate)
	}
	if c == nil {
		return false
	}
	c.end(r)
	return true
}

// idleLocked reports whether no call is in flight that will be answered.
func (l *link) idleLocked() bool {
	for _, c := range l.pending {
		if c.timeout < eras.Forever {
			return false
		}
	}
	return true
}

// issued reports whether a request with that id was ever sent.
func (l *link) issued(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return id >= 1 && id <= l.next
}

// onlyClient returns a call in flight when all that are belong to one client,
// and how many clients have any.
func (l *link) onlyClient() (only *call, clients int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := make(map[string]*call)
	for _, c := range l.pending {
		if c.client == nil {
			continue
		}
		session := c.client.Session()
		if last := found[session]; last == nil || c.id > last.id {
			found[session] = c
		}
	}
	if len(found) == 1 {
		for _, c := range found {
			only = c
		}
	}
	return only, len(found)
}

// asMishap is why a link ended.
func (l *link) asMishap() *mishap {
	if m, ok := errors.AsType[*mishap](context.Cause(l.life)); ok {
		return m
	}
	return &mishap{failure: source.Fail(source.ServerCrashed, l.server, "the session ended")}
}
