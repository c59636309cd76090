// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	headerSession   = "Mcp-Session-Id"
	headerLastEvent = "Last-Event-Id"

	maxSessionID = 4 << 10 // bytes
	maxResumes   = 4       // tries in a row to go on with a stream
)

// A streamable is the wire of streamable HTTP (MCP specification, 2025-03-26
// and later, "Transports").
type streamable struct {
	*caller
	inlet inlet

	mu       sync.RWMutex // guards the next two
	session  string       // empty when the server gave none
	revision protocol.Revision
}

var _ wire = (*streamable)(nil)

func (s *streamable) open(Context) *mishap { return nil }

// greeted implements wire.
func (s *streamable) greeted(revision protocol.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = revision
}

// isStateless reports whether there is no session.
func (s *streamable) isStateless() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.revision.Stateless()
}

// header is what a request of the session carries, on top of its own.
func (s *streamable) header(own http.Header) http.Header {
	s.mu.RLock()
	defer s.mu.RUnlock()
	h := make(http.Header, 3+len(own))
	maps.Copy(h, own)
	if s.session != "" {
		h.Set(headerSession, s.session)
	}
	if s.revision != "" {
		h.Set(protocol.HeaderRevision, string(s.revision))
	}
	return h
}

// send implements wire: one POST, whose answer has what the message asked for.
// After the last message of the handshake it opens the standing stream.
func (s *streamable) send(ctx Context, p *parcel) *mishap {
	res, m := s.do(ctx, &request{
		method: http.MethodPost, accept: typeJSON + ", " + typeStream, header: s.header(p.header), parcel: p,
	})
	switch {
	case m != nil && m.answer != nil && !(m.status >= http.StatusInternalServerError && p.introduces()):
		s.inlet.take(m.answer, p.call)
		return nil
	case m != nil:
		return s.lost(m, p)
	}
	defer res.Body.Close()
	switch p.message.Method {
	case protocol.MethodInitialize:
		if m := s.begin(res); m != nil {
			return m
		}
	case protocol.NoteInitialized:
		s.inlet.goes(s.stand)
	}
	switch {
	case p.call == nil:
		if known := res.ContentLength; 0 < known && known <= maxRefusal {
			_, _ = io.CopyN(io.Discard, res.Body, known) // so that the connection can be used again
		}
		return nil
	case res.kind == typeStream:
		return s.follow(ctx, res, p.call)
	case res.kind == typeJSON:
		return s.single(ctx, res, p.call)
	}
	text := fmt.Sprintf("%s answered %s with %.100q in place of MCP", host(res.from.url), statusOf(res), res.kind)
	return s.mishap(text, "look whether url is that of an MCP server, with its path").
		with(func(m *mishap) { m.lasting = true })
}

// lost sees in a 404 after the handshake that the session is over.
func (s *streamable) lost(m *mishap, p *parcel) *mishap {
	if m.status == http.StatusNotFound && p.message.Method != protocol.MethodInitialize && !s.isStateless() {
		m.lasting, m.forgotten = false, true
		m.failure.Code = source.ServerCrashed
		m.failure.Message = "the server doesn't know the session any more: " + m.failure.Message
		m.failure.Fix = ""
	}
	return m
}

// begin takes the id of the new session.
func (s *streamable) begin(res *response) *mishap {
	id := res.Header.Get(headerSession)
	visible := !strings.ContainsFunc(id, func(r rune) bool { return r < 0x21 || r > 0x7e })
	if !visible || len(id) > maxSessionID {
		return s.mishap("the server's session id is none that can be sent back", "tell its author").
			with(func(m *mishap) { m.lasting = true })
	}
	s.mu.Lock()
	s.session = id
	s.mu.Unlock()
	return nil
}

// single takes an answer that is one JSON text.
func (s *streamable) single(ctx Context, res *response, c *call) *mishap {
	body, more, err := res.whole(s.limits.frame)
	switch {
	case err != nil:
		return s.cut(ctx, res.from, err)
	case more:
		s.inlet.tooLarge(body, max(int64(len(body)), res.ContentLength), c)
	default:
		s.inlet.take(body, c)
	}
	if !c.settled.Load() {
		return s.mishap("the server's answer is not one to the request", "use another version of it")
	}
	return nil
}

// cut is the mishap of an answer that ended in its middle.
func (s *streamable) cut(ctx Context, from *address, err error) *mishap {
	if ctx.Err() != nil {
		return &mishap{failure: source.Cancelled(ctx, s.target.entry.Name)}
	}
	text := "the connection to " + host(from.url) + " ended before the answer was there"
	if err != nil && !errors.Is(err, io.EOF) {
		text += ": " + from.scrub(err.Error())
	}
	return s.mishap(text, "").with(func(m *mishap) {
		m.doubtful, m.failure.Code, m.failure.Cause = true, source.ServerCrashed, err
	})
}

// follow reads the stream of a call until its answer is there, over as many
// connections as that takes, and then to its end.
func (s *streamable) follow(ctx Context, res *response, c *call) *mishap {
	defer func() { _ = res.Body.Close() }()
	p := newPosition(s.limits)
	for {
		err := s.read(res.Body, p, c)
		if c.settled.Load() {
			return nil
		}
		if p.last == "" || s.isStateless() || errors.Is(err, errRunaway) { // without a session nothing is resumed
			return s.cut(ctx, res.from, err)
		}
		next := s.resume(ctx, p)
		if next == nil {
			return s.cut(ctx, res.from, err)
		}
		_ = res.Body.Close()
		res = next
	}
}

// resume goes on with the stream of a call after its last event, when the server
// wants that. It returns nil when the server can't do it.
func (s *streamable) resume(ctx Context, p *position) *response {
	for range maxResumes {
		pause(ctx, p.delay())
		res, m := s.listen(ctx, p.last)
		if m == nil {
			return res
		}
		if ctx.Err() != nil || m.status != 0 && m.status < 500 || m.lasting {
			return nil
		}
	}
	return nil
}

// listen opens a stream, after an event unless last is empty.
func (s *streamable) listen(ctx Context, last string) (*response, *mishap) {
	h := s.header(nil)
	if last != "" {
		h.Set(headerLastEvent, last)
	}
	res, m := s.do(ctx, &request{method: http.MethodGet, accept: typeStream, header: h})
	if m == nil && res.kind != typeStream {
		_ = res.Body.Close()
		m = s.mishap("the server answers GET with no stream", "")
		m.status = http.StatusMethodNotAllowed
	}
	return res, m
}

// read takes all events of a stream, until it ends.
func (s *streamable) read(body io.Reader, p *position, via *call) error {
	events := newEventReader(body, s.limits.frame)
	events.lastID, events.pending = p.last, p.last
	for {
		e, err := events.next()
		p.last = events.lastID
		if events.retry >= 0 {
			p.retry = min(max(events.retry, s.limits.retryMin), s.limits.retryMax)
		}
		if err != nil {
			return err
		}
		p.vain = 0
		switch {
		case e.kind != "" && e.kind != "message": // a server's own
		case e.size > s.limits.frame:
			s.inlet.tooLarge(e.data, e.size, via)
		case len(e.data) > 0:
			s.inlet.take(e.data, via)
		}
	}
}

// close implements wire: it ends the session at the server, which may not want
// that. One that the server doesn't know any more needs no end, and its
// replacement waits for this.
func (s *streamable) close(ctx Context) {
	h := s.header(nil)
	m, _ := errors.AsType[*mishap](context.Cause(s.inlet.alive())) // nil for who ends it otherwise
	forgotten := m != nil && m.forgotten
	if h.Get(headerSession) != "" && !forgotten {
		res, m := s.do(ctx, &request{method: http.MethodDelete, accept: typeJSON, header: h})
		if m == nil {
			_ = res.Body.Close()
		}
	}
	s.client.CloseIdleConnections()
}

// A position is where a stream is to be resumed, and when.
type position struct {
	last  string        // event; empty when there was none with an id
	retry time.Duration // that the server asks for
	max   time.Duration
	vain  int // connections in a row that brought nothing
}

func newPosition(l *limits) *position { return &position{retry: l.retry, max: l.retryMax} }

// delay is how long to wait before the next connection, which may be in vain.
func (p *position) delay() time.Duration {
	p.vain++
	return min(p.retry<<min(p.vain-1, 10), p.max)
}

// pause waits, or until ctx ends.
func pause(ctx Context, d time.Duration) {
	waiting, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-waiting.Done()
}
