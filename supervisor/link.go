// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// Short names for what appears in every signature here.
type (
	// Raw is JSON text.
	Raw = protocol.Raw
	// Context is context.Context.
	Context = context.Context
)

// maxAsked bounds the requests of one server that wait for a client's answer.
const maxAsked = 64

// A link is JSON-RPC over the pipes of one run. Ids of garra's requests are
// numbers of its own, so that clients' ids can't meet. Safe for concurrent use.
type link struct {
	server string
	hooks  *Hooks
	in     *pipeWriter
	noise  func(line string)

	mu      sync.Mutex       // guards pending, next and failure
	pending map[uint64]*call // by id
	next    uint64
	failure *source.Failure // set once: the link is closed

	answered atomic.Bool             // a result came
	asked    chan struct{}           // holds one token for each request that waits for an answer
	life     Context                 // ends, with its cause, when there is nothing more to read
	end      context.CancelCauseFunc // of life
}

// newLink starts to read from out.
func newLink(server string, in, out *os.File, hooks *Hooks, noise func(string)) *link {
	l := &link{
		server: server, hooks: hooks, noise: noise,
		in:      newPipeWriter(in),
		pending: make(map[uint64]*call),
		asked:   make(chan struct{}, maxAsked),
	}
	l.life, l.end = context.WithCancelCause(context.Background())
	go l.read(out) // ends with out, at the latest when the run closes it
	return l
}

// send writes one message.
func (l *link) send(ctx Context, m *protocol.Message) error {
	frame := append(m.Append(make([]byte, 0, m.Size()+1)), '\n')
	return l.in.write(ctx, frame)
}

// notify sends a notification; one that can't be sent within a second is lost,
// as it would be at a server that just died.
func (l *link) notify(method string, params Raw) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := l.send(ctx, protocol.NewNotification(method, params)); err != nil {
		l.noise(fmt.Sprintf("notification %s was not taken: %v", method, err))
	}
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
		c.end(reply{err: f})
	}
}

// read takes frames from the server until there are no more.
func (l *link) read(out io.Reader) {
	frames := protocol.NewReader(out, 0)
	for {
		frame, err := frames.Next()
		if tooLarge, ok := errors.AsType[*protocol.TooLargeError](err); ok {
			l.dropped(tooLarge)
			continue
		}
		if err != nil {
			l.end(err)
			return
		}
		l.take(frame)
	}
}

// take handles one line. What is no message is noted and skipped.
func (l *link) take(frame []byte) {
	batch, ok, err := protocol.ParseBatch(frame)
	if ok && err == nil && len(batch) > 0 {
		for _, f := range batch {
			l.takeOne(f)
		}
		return
	}
	l.takeOne(frame)
}

func (l *link) takeOne(frame []byte) {
	m, err := protocol.Parse(frame)
	switch {
	case err != nil:
		l.noise(string(frame[:min(len(frame), maxLineBytes)]))
	case m.IsResponse():
		l.answer(m)
	case m.IsNotification():
		l.told(m)
	default:
		l.ask(m)
	}
}

// dropped fails the call whose answer was too large.
func (l *link) dropped(e *protocol.TooLargeError) {
	n, isNumber := e.ID.Number()
	if !e.Reply || !isNumber {
		l.noise(e.Error())
		return
	}
	l.finish(n, reply{err: &source.Failure{
		Code: source.FrameTooLarge, Server: l.server, Message: "the answer was dropped: " + e.Error(),
		Fix: "ask for less at a time",
	}})
}

// answer hands a response to the call that it belongs to. One that nobody waits
// for (a call that was cancelled or answered before) is dropped.
func (l *link) answer(m *protocol.Message) {
	n, isNumber := m.ID.Number()
	if !isNumber {
		l.noise(fmt.Sprintf("an answer to %s, which was not asked", m.ID))
		return
	}
	r := reply{result: m.Result}
	if m.Error != nil {
		r.err = protocol.ParseError(m.Error)
	} else {
		l.answered.Store(true)
	}
	l.finish(n, r)
}

// finish ends the call with that id, if there still is one.
func (l *link) finish(id uint64, r reply) {
	l.mu.Lock()
	c := l.pending[id]
	delete(l.pending, id)
	l.mu.Unlock()
	if c != nil {
		c.end(r)
	}
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
