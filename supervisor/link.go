// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

// Short names for what appears in every signature here.
type (
	// Raw is JSON text.
	Raw = protocol.Raw
	// Context is context.Context.
	Context = context.Context
)

const (
	maxAsked = 64 // requests of one server that wait for a client's answer
	maxNotes = 64 // messages without an answer that wait for one server to read
)

// turn is how many messages of one server are taken in a row. What reads a server that
// never stops talking would else keep its processor for the ten milliseconds that the Go
// scheduler gives it, again and again, while calls of other servers wait.
const turn = 16

// A wiring is what a link connects.
type wiring struct {
	server  string
	origin  source.Origin
	in, out *os.File
	hooks   *source.Hooks
	noise   func(message string) // is told of output that is no message, or of no use
	trouble func(message string) // is told of what the server didn't get
	limits  *limits
	redact  *redact.Set
}

// A link is JSON-RPC over the pipes of one run. Ids of garra's requests are
// numbers of its own, so that clients' ids can't meet. Safe for concurrent use.
type link struct {
	wiring
	writer *pipeWriter

	mu      sync.Mutex                         // guards the next four
	pending map[uint64]*call                   // by id
	next    uint64                             // the last id that was used
	failure *source.Failure                    // set once: the link is closed
	asked   map[protocol.ID]context.CancelFunc // requests of the server that wait for an answer

	ear      atomic.Pointer[eras.Ear] // of a server of the stateless era; nil for one with a handshake
	answered atomic.Bool              // a result came
	heard    atomic.Uint64            // counts what the server said
	working  atomic.Int64             // calls in flight, without those that are no work
	owing    atomic.Bool              // a call was given up, and nothing was heard since
	stray    atomic.Pointer[string]   // the last line that was no message
	notes    chan struct{}            // holds one token for each message that waits in post
	life     Context                  // ends, with its cause, when the server can't be spoken to any more
	end      context.CancelCauseFunc  // of life
	cut      bool                     // the frame at hand is the begin of one; only the reading goroutine looks
	read     chan struct{}            // closed when there is nothing more to read
}

var _ lifecycle.Link = (*link)(nil)

// newLink starts to read what the server says.
func newLink(w wiring) *link {
	l := &link{
		wiring:  w,
		pending: make(map[uint64]*call),
		asked:   make(map[protocol.ID]context.CancelFunc),
		notes:   make(chan struct{}, maxNotes),
		read:    make(chan struct{}),
	}
	l.life, l.end = context.WithCancelCause(context.Background())
	l.writer = newPipeWriter(w.in, l.end)
	go l.readAll() // ends with out, at the latest when the run closes it; the run waits for it
	return l
}

// send writes one message; begun is false when the server won't get any of it.
func (l *link) send(ctx Context, m *protocol.Message) (begun bool, err error) {
	return l.writer.write(ctx, frameOf(m))
}

// frameOf is a message as it goes over the pipe.
func frameOf(m *protocol.Message) []byte {
	return append(m.Append(make([]byte, 0, m.Size()+1)), '\n')
}

// Notify implements lifecycle.Link.
func (l *link) Notify(method string, params Raw) { l.notify(method, params) }

// Answered implements lifecycle.Link.
func (l *link) Answered() bool { return l.answered.Load() }

func (l *link) notify(method string, params Raw) { l.post(protocol.NewNotification(method, params)) }

// post sends a message without an answer, and doesn't wait for the server. One that
// it doesn't take within a second is lost, as it would be at a server that just
// died, and so is one that comes while too many wait.
func (l *link) post(m *protocol.Message) {
	if l.writer.offer(frameOf(m)) {
		return
	}
	select {
	case l.notes <- struct{}{}:
	default:
		l.trouble(fmt.Sprintf("the server did not get %s: %d messages wait for it already", nameOf(m), maxNotes))
		return
	}
	go func() { // ends within the time that the server has
		defer func() { <-l.notes }()
		ctx, cancel := context.WithTimeout(context.Background(), l.limits.note)
		defer cancel()
		_, err := l.send(ctx, m)
		if errors.Is(err, context.DeadlineExceeded) { // any other error is that the run ends
			l.trouble(fmt.Sprintf("the server did not take %s within %s", nameOf(m), l.limits.note))
		}
	}()
}

// nameOf is what a message without an answer is called.
func nameOf(m *protocol.Message) string {
	if m.Method != "" {
		return m.Method
	}
	return "the answer to " + m.ID.String()
}

// close ends the link: every call in flight, and each later one, gets the
// failure. Only the first call has an effect.
func (l *link) close(f *source.Failure) {
	l.mu.Lock()
	if l.failure != nil {
		l.mu.Unlock()
		return
	}
	l.failure = f
	calls := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, c := range calls {
		c.end(reply{err: f, lost: true})
	}
}

// readAll takes frames from the server until there are no more. Nothing that is
// done with them may wait for the server or for a client.
func (l *link) readAll() {
	defer close(l.read)
	frames := protocol.NewReader(l.out, l.limits.frame)
	for n := 1; ; n++ {
		if n%turn == 0 {
			runtime.Gosched()
		}
		frame, err := frames.Next()
		if tooLarge, ok := errors.AsType[*protocol.TooLargeError](err); ok {
			l.dropped(tooLarge)
			continue
		}
		if err != nil {
			l.end(err)
			return
		}
		l.heard.Add(1)
		l.owing.Store(false)
		l.cut = frames.Cut()
		l.take(frame)
	}
}

// keepBack drops a message with a secret in it that may not leave in any form, and
// fails the call that it answers.
func (l *link) keepBack(frame []byte, found redact.Found) {
	what := fmt.Sprintf("it holds the secret %q, whose policy is block", found.Names())
	id, answers := protocol.Peek(frame)
	n, isNumber := id.Number()
	answered := isNumber && answers && l.finish(n, reply{err: &source.Failure{
		Code: source.SecretBlocked, Server: l.server, Message: "the answer was kept back: " + what,
		Fix: "ask for something else",
	}})
	if answered {
		return
	}
	l.noise("a message was kept back: " + what)
	if !answers && !id.IsZero() {
		l.refuse(id, "the request was kept back: "+what)
	}
}

// take handles one line: a message, or a batch of them. What is neither is noted
// and skipped.
func (l *link) take(frame []byte) {
	batch, ok, err := protocol.ParseBatch(frame)
	if !ok || err != nil {
		l.takeOne(frame)
		return
	}
	for _, f := range batch {
		l.takeOne(f)
	}
}

func (l *link) takeOne(frame []byte) {
	frame, found := l.redact.JSON(frame)
	if found.Blocked() {
		l.keepBack(frame, found)
		return
	}
	m, err := protocol.Parse(frame)
	switch {
	case err != nil:
		l.garbled(frame, err)
	case m.IsResponse():
		l.answer(m)
	case m.IsNotification():
		l.told(m)
	default:
		l.ask(m)
	}
}

// garbled takes a line that is no message: if it was to be an answer, the call
// need not wait for a better one. What the server's end cut off says nothing: the end
// answers the call.
func (l *link) garbled(frame []byte, err error) {
	id, answers := protocol.Peek(frame)
	if n, isNumber := id.Number(); isNumber && answers && !l.cut {
		l.finish(n, reply{err: &source.Failure{
			Code: source.ServerFailed, Server: l.server, Cause: err,
			Message: fmt.Sprintf("the server's answer is no MCP message: %v", err),
			Fix:     "tell its author, or use another version of it",
		}})
	}
	stray := string(frame[:min(len(frame), 200)])
	l.stray.Store(&stray)
	l.noise(fmt.Sprintf("a line on standard output is no MCP message: %.200q", frame))
}

// dropped fails the call whose answer was too large, and refuses a request that
// was.
func (l *link) dropped(e *protocol.TooLargeError) {
	n, isNumber := e.ID.Number()
	failed := e.Reply && isNumber && l.finish(n, reply{err: &source.Failure{
		Code: source.FrameTooLarge, Server: l.server, Message: "the answer was dropped: " + e.Error(),
		Fix: "ask for less at a time",
	}})
	if failed {
		return
	}
	l.noise("dropped a " + e.Error())
	if !e.Reply && !e.ID.IsZero() {
		l.refuse(e.ID, "the request is too large")
	}
}

// answer hands a response to the call that it belongs to. One that nobody waits
// for any more (its call was cancelled, timed out or answered before) is dropped.
func (l *link) answer(m *protocol.Message) {
	r := reply{result: m.Result}
	if m.Error != nil {
		r.err = protocol.ParseError(m.Error)
	} else {
		l.answered.Store(true)
	}
	n, isNumber := m.ID.Number()
	if isNumber && l.finish(n, r) {
		return
	}
	if !isNumber || !l.issued(n) {
		l.noise(fmt.Sprintf("an answer to %.80s, which nobody asked: %.200s", m.ID, m.Error))
	}
}

// finish ends the call with that id, if there still is one.
func (l *link) finish(id uint64, r reply) bool {
	l.mu.Lock()
	c := l.pending[id]
	delete(l.pending, id)
	l.mu.Unlock()
	if c == nil {
		return false
	}
	c.end(r)
	return true
}

// issued reports whether a request with that id was ever sent.
func (l *link) issued(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return id >= 1 && id <= l.next
}

// clients returns one call of each client that has a call in flight.
func (l *link) clients() map[string]*call {
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
	return found
}
