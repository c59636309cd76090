// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/internal/sse"
	"github.com/garraia/garra/protocol"
)

// Headers of the streamable HTTP transport.
const (
	headerSession = "Mcp-Session-Id"
	headerLastID  = "Last-Event-Id"
)

// HTTP returns the handler of the streamable HTTP transport (MCP specification,
// "Transports") for the view of all servers, on which the path has no {server},
// and of one. principal names who a request was authenticated as; a session
// belongs to the principal that began it.
func (g *Gateway) HTTP(principal func(*http.Request) string) http.Handler {
	h := &httpHandler{gateway: g, principal: principal, sessions: newHTTPSessions(g)}
	h.bodies = newShares(bodyBytes, shareWait)
	mux := http.NewServeMux()
	for _, path := range []string{"/mcp", "/mcp/{server}"} {
		mux.HandleFunc("POST "+path, h.post)
		mux.HandleFunc("GET "+path, h.get)
		mux.HandleFunc("DELETE "+path, h.delete)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			notAllowed(w, "GET, POST, DELETE")
		})
	}
	return mux
}

type httpHandler struct {
	gateway   *Gateway
	principal func(*http.Request) string
	sessions  *httpSessions
	bodies    *shares
}

// refuse answers an HTTP request that is no valid MCP request, in the form of a
// JSON-RPC error, which MCP clients read.
func refuse(w http.ResponseWriter, status, code int, format string, args ...any) {
	refuseRequest(w, status, protocol.ID{}, protocol.Errorf(code, format, args...))
}

// refuseRequest is refuse for a request whose id is known.
func refuseRequest(w http.ResponseWriter, status int, id protocol.ID, e *protocol.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(protocol.NewError(id, e).Append(nil), '\n'))
}

// post takes messages of a client.
func (h *httpHandler) post(w http.ResponseWriter, r *http.Request) {
	server := r.PathValue("server")
	if server != "" && !h.gateway.Has(server) {
		refuse(w, http.StatusNotFound, protocol.CodeInvalidRequest, "there is no server %q", server)
		return
	}
	body, done := h.readBody(w, r)
	if done == nil {
		return
	}
	defer done()
	if isStateless(r, nil) {
		m, err := protocol.ParseStrict(body)
		if err != nil {
			refuseRequest(w, http.StatusBadRequest, protocol.ID{}, parseError(err))
			return
		}
		h.stateless(w, r, m)
		return
	}
	if r.Header.Get(headerSession) == "" {
		h.begin(w, r, body)
		return
	}
	s := h.find(w, r)
	if s == nil {
		return
	}
	messages, err := s.parse(body)
	if err != nil {
		refuseRequest(w, http.StatusBadRequest, protocol.ID{}, parseError(err))
		return
	}
	if len(messages) == 1 && isStateless(r, messages[0]) {
		h.stateless(w, r, messages[0]) // whoever has a session besides
		return
	}
	if !h.moved(w, messages...) {
		s.exchange(w, r, messages, body[0] == '[')
	}
}

// begin opens a session for a client that sent initialize.
func (h *httpHandler) begin(w http.ResponseWriter, r *http.Request, body []byte) {
	m, err := protocol.ParseStrict(body)
	if err != nil {
		refuseRequest(w, http.StatusBadRequest, protocol.ID{}, parseError(err))
		return
	}
	if isStateless(r, m) {
		h.stateless(w, r, m)
		return
	}
	if m.Method != protocol.MethodInitialize || !m.IsRequest() {
		e := asError(notGreeted(m.Method))
		if m.IsRequest() {
			refuseRequest(w, http.StatusBadRequest, m.ID, e)
			return
		}
		refuse(w, http.StatusBadRequest, e.Code, "no %s header: %s", headerSession, e.Message)
		return
	}
	s := h.sessions.open(h.gateway.view(r.PathValue("server")), h.principal(r))
	t := newStream("", 1, &s.backlog)
	t.connected(1) // as long as this lasts: nothing of it is kept
	s.receive(m, t)
	events, _ := t.next(r.Context(), t.attach(), 0)
	if len(events) == 0 {
		s.close()
		return // the client is gone
	}
	if s.isGreeted() {
		w.Header().Set(headerSession, s.id)
	} else {
		s.close()
	}
	if accepts(r, "application/json") {
		writeJSON(w, http.StatusOK, events[0].pieces...)
	} else if out, err := sse.Begin(w); err == nil {
		_ = out.Event("message", "", events[0].pieces...) // an error is that the client is gone
	}
}

// writeJSON writes a body of JSON, which may be in pieces.
func writeJSON(w http.ResponseWriter, status int, body ...[]byte) {
	size := 0
	for _, piece := range body {
		size += len(piece)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	if size > smallBody { // the kernel takes a small one whoever reads
		// A response without deadlines, as tests have it, just has none.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sse.WriteTimeout(size)))
	}
	w.WriteHeader(status)
	for _, piece := range body {
		w.Write(piece)
	}
}

// smallBody is up to how many bytes a body fits in the buffers of a connection.
const smallBody = 16 << 10

// get opens the session's own stream, or one that broke off.
func (h *httpHandler) get(w http.ResponseWriter, r *http.Request) {
	if isStateless(r, nil) {
		notAllowed(w, http.MethodPost) // the only one since 2026-07-28
		return
	}
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, protocol.CodeInvalidRequest, "GET needs Accept: text/event-stream")
		return
	}
	s := h.find(w, r)
	if s == nil {
		return
	}
	t, seq := s.standing, uint64(0)
	if last := r.Header.Get(headerLastID); last != "" {
		var err error
		if t, seq, err = s.resume(last); err != nil {
			refuse(w, http.StatusBadRequest, protocol.CodeInvalidRequest, "%v", err)
			return
		}
	} else {
		seq = t.taken()
	}
	s.stream(w, r, t, seq)
}

// delete ends the session.
func (h *httpHandler) delete(w http.ResponseWriter, r *http.Request) {
	if isStateless(r, nil) {
		notAllowed(w, http.MethodPost) // the only one since 2026-07-28
		return
	}
	if s := h.find(w, r); s != nil {
		s.close()
		w.WriteHeader(http.StatusNoContent)
	}
}

// notAllowed refuses another HTTP method than those.
func notAllowed(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	refuse(w, http.StatusMethodNotAllowed, protocol.CodeInvalidRequest, "the HTTP methods here are %s", methods)
}

// find returns the session of a request, or answers why there is none. To
// another principal, or on the path of another server, a session doesn't exist.
func (h *httpHandler) find(w http.ResponseWriter, r *http.Request) *httpSession {
	id := r.Header.Get(headerSession)
	if id == "" {
		refuse(w, http.StatusBadRequest, protocol.CodeInvalidRequest, "no %s header", headerSession)
		return nil
	}
	s := h.sessions.get(id)
	if s == nil || s.principal != h.principal(r) || s.view != h.gateway.view(r.PathValue("server")) {
		refuse(w, http.StatusNotFound, protocol.CodeInvalidRequest, "no such session; initialize again")
		return nil
	}
	if v := protocol.Revision(r.Header.Get(protocol.HeaderRevision)); v != "" && !v.Known() {
		refuse(w, http.StatusBadRequest, protocol.CodeInvalidRequest,
			"unknown %s %.40q", protocol.HeaderRevision, string(v))
		return nil
	}
	return s
}

// isJSON reports whether a Content-Type is that of JSON.
func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// acceptsBoth reports whether the client takes JSON and events, in the words of
// nearly all of them.
func acceptsBoth(r *http.Request) bool {
	values := r.Header["Accept"]
	return len(values) == 1 && (values[0] == "application/json, text/event-stream" ||
		values[0] == "application/json,text/event-stream")
}

// accepts reports whether the client takes a media type (RFC 9110, 12.5.1). No
// Accept header takes everything.
func accepts(r *http.Request, media string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 || acceptsBoth(r) && (media == "application/json" || media == "text/event-stream") {
		return true
	}
	whole, _, _ := strings.Cut(media, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || params["q"] == "0" {
			continue
		}
		if kind == media || kind == "*/*" || kind == whole+"/*" {
			return true
		}
	}
	return false
}

// exchange hands messages to the session and answers with what they lead to.
func (s *httpSession) exchange(w http.ResponseWriter, r *http.Request, messages []*protocol.Message, batch bool) {
	requests := 0
	for _, m := range messages {
		if m.IsRequest() {
			requests++
		}
	}
	if requests == 0 {
		for _, m := range messages {
			s.receive(m, s.standing)
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	t := s.newStream(requests, !accepts(r, "text/event-stream"))
	t.connected(1)
	leave := sync.OnceFunc(func() { t.connected(-1) })
	defer leave()
	defer context.AfterFunc(r.Context(), leave)() // the call may go on for long
	if len(messages) == 1 && !batch {
		s.serveOne(w, r, messages[0], t)
		return
	}
	// What was read is in work as long as the requests run, as it is with one, also
	// when the client is gone.
	var running sync.WaitGroup
	defer running.Wait()
	for _, m := range messages {
		if !m.IsRequest() {
			s.receive(m, t)
		} else if run := s.prepare(m, t); run != nil {
			running.Go(run) // ends with the request, at the latest when the session does
		}
	}
	if t.oneWay {
		s.respondJSON(w, r, t, batch)
	} else {
		s.stream(w, r, t, 0)
	}
}

// serveOne runs one request in the goroutine of its connection, and answers with
// JSON when the answer is the first thing that comes, and soon enough; else the
// events are written while it runs.
func (s *httpSession) serveOne(w http.ResponseWriter, r *http.Request, m *protocol.Message, t *stream) {
	if !t.oneWay {
		live := &liveStream{write: func() { s.stream(w, r, t, 0) }, done: make(chan struct{})}
		t.onEvent = live.begin
		defer live.wait()
		defer time.AfterFunc(streamAfter, live.begin).Stop()
		s.serveHere(m, t)
		if !live.claim() {
			return
		}
	} else {
		s.serveHere(m, t)
	}
	answer, ok := t.answer()
	switch {
	case r.Context().Err() != nil && !t.oneWay && !s.guest:
		return // the client is gone; it may come back for the answer
	case r.Context().Err() != nil:
	case !ok:
		w.WriteHeader(http.StatusAccepted) // cancelled
	case t.oneWay || s.guest || accepts(r, "application/json"):
		s.answer(w, answer)
	default:
		s.stream(w, r, t, 0)
		return
	}
	s.forget(t)
}

// A liveStream is a response that becomes a stream of events if need be, in a
// goroutine of its own. It is safe for concurrent use.
type liveStream struct {
	write func() // writes events until there are no more
	done  chan struct{}

	mu      sync.Mutex // guards all below
	begun   bool
	claimed bool // the response is written by another
}

// begin begins to write events, once, unless the response is claimed.
func (l *liveStream) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun || l.claimed {
		return
	}
	l.begun = true
	go func() { // ends with the stream; wait waits for it
		defer close(l.done)
		l.write()
	}()
}

// claim takes the response, if no event was written.
func (l *liveStream) claim() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claimed = !l.begun
	return l.claimed
}

// wait waits until all events are written, if any were.
func (l *liveStream) wait() {
	l.mu.Lock()
	begun := l.begun
	l.mu.Unlock()
	if begun {
		<-l.done
	}
}

// respondJSON answers a client that takes nothing but JSON: with the answer, or
// all of them to a batch. What servers say before is lost on it.
func (s *httpSession) respondJSON(w http.ResponseWriter, r *http.Request, t *stream, batch bool) {
	defer s.forget(t)
	reader, seq := t.attach(), uint64(0)
	var answers []event
	for done := false; !done; {
		var events []event
		events, done = t.next(r.Context(), reader, seq)
		if r.Context().Err() != nil {
			return // the client is gone
		}
		for _, e := range events {
			seq = e.seq
			if e.answer {
				answers = append(answers, e)
			}
		}
	}
	switch {
	case len(answers) == 0: // cancelled
		w.WriteHeader(http.StatusAccepted)
	case batch:
		writeJSON(w, http.StatusOK, array(answers)...)
	default:
		s.answer(w, answers[0])
	}
}

// array is the answers to a batch.
func array(answers []event) [][]byte {
	body := [][]byte{[]byte("[")}
	for i, e := range answers {
		if i > 0 {
			body = append(body, []byte(","))
		}
		body = append(body, e.pieces...)
	}
	return append(body, []byte("]"))
}

// answer writes the one answer to a request. In the stateless era its HTTP status
// tells of an error.
func (s *httpSession) answer(w http.ResponseWriter, e event) {
	status := http.StatusOK
	if s.guest && e.code != 0 {
		status = statusOf(e.code)
	}
	writeJSON(w, status, e.pieces...)
}

// streamAfter is when a POST without an answer becomes a stream.
const streamAfter = 5 * time.Second

// stream writes a stream's events behind seq until it ends, the client is gone
// or another reader takes over. A comment now and then keeps the connection.
func (s *httpSession) stream(w http.ResponseWriter, r *http.Request, t *stream, seq uint64) {
	reader := t.attach()
	t.connected(1)
	defer t.connected(-1)
	out, err := sse.Begin(w)
	if err == nil && s.primes() {
		err = out.Event("", eventID(t.id, seq), nil)
	}
	if err != nil {
		return
	}
	for {
		ended := s.life.Err() != nil // which was asked for last: what came before is still written
		ctx, cancel := context.WithTimeout(r.Context(), sse.KeepAlive)
		events, done := t.next(ctx, reader, seq)
		cancel()
		for _, e := range events {
			id := eventID(t.id, e.seq)
			if s.guest {
				id = ""
			}
			if out.Event("message", id, e.pieces...) != nil {
				return
			}
			seq = e.seq
		}
		switch {
		case r.Context().Err() != nil || ended:
			return
		case done && len(events) == 0 && t.over(reader):
			s.forget(t)
			return
		case done && len(events) == 0 && !t.reads(reader):
			return
		case len(events) == 0:
			if out.Comment() != nil {
				return
			}
		}
	}
}
