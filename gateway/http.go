// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/garraia/garra/internal/sse"
	"github.com/garraia/garra/protocol"
)

// Headers of the streamable HTTP transport.
const (
	headerSession  = "Mcp-Session-Id"
	headerRevision = "Mcp-Protocol-Version"
	headerLastID   = "Last-Event-Id"
)

// HTTP returns the handler of the streamable HTTP transport (MCP specification,
// "Transports") for the view of all servers, on which the path has no {server},
// and of one. principal names who a request was authenticated as; a session
// belongs to the principal that began it.
func (g *Gateway) HTTP(principal func(*http.Request) string) http.Handler {
	h := &httpHandler{gateway: g, principal: principal, sessions: newHTTPSessions(g)}
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
	body, ok := readBody(w, r)
	if !ok {
		return
	}
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
	s.exchange(w, r, messages, body[0] == '[')
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
		writeJSON(w, http.StatusOK, events[0].message)
	} else if out, err := sse.Begin(w); err == nil {
		_ = out.Event("message", "", events[0].message) // an error is that the client is gone
	}
}

// writeJSON writes a body of JSON.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// A response without deadlines, as tests have it, just has none.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sse.WriteTimeout(len(body))))
	w.WriteHeader(status)
	w.Write(body)
}

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
	if v := protocol.Revision(r.Header.Get(headerRevision)); v != "" && !v.Known() {
		refuse(w, http.StatusBadRequest, protocol.CodeInvalidRequest, "unknown %s %.40q", headerRevision, string(v))
		return nil
	}
	return s
}

// readBody reads the body of a POST, or answers what is wrong with it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, protocol.CodeInvalidRequest,
			"POST needs Content-Type: application/json")
		return nil, false
	}
	if !accepts(r, "application/json") && !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, protocol.CodeInvalidRequest,
			"POST needs Accept: application/json, text/event-stream")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, protocol.DefaultMaxFrame))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		refuse(w, http.StatusRequestEntityTooLarge, protocol.CodeInvalidRequest,
			"the message is over %d bytes", tooLarge.Limit)
		return nil, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, protocol.CodeParse, "reading the message: %v", err)
		return nil, false
	}
	return body, true
}

// accepts reports whether the client takes a media type (RFC 9110, 12.5.1). No
// Accept header takes everything.
func accepts(r *http.Request, media string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
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
	defer t.connected(-1)
	for _, m := range messages {
		s.receive(m, t)
	}
	if !accepts(r, "text/event-stream") {
		s.respondJSON(w, r, t, batch)
		return
	}
	s.respond(w, r, t, batch)
}

// respond answers a POST: with JSON when the answer is the first thing that
// comes, and soon enough; else with a stream of events.
func (s *httpSession) respond(w http.ResponseWriter, r *http.Request, t *stream, batch bool) {
	reader := t.attach()
	soon, cancel := context.WithTimeout(r.Context(), streamAfter)
	events, _ := t.next(soon, reader, 0)
	cancel()
	switch {
	case r.Context().Err() != nil:
		return // the client is gone; it may come back for the answer
	case !batch && len(events) == 1 && t.finished() && (accepts(r, "application/json") || s.guest):
		s.answer(w, events[0].message)
		s.forget(t)
		return
	case len(events) == 0 && t.finished():
		s.forget(t) // cancelled: there is no answer
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.stream(w, r, t, 0)
}

// respondJSON answers a client that takes nothing but JSON: with the answer, or
// all of them to a batch. What servers say before is lost on it.
func (s *httpSession) respondJSON(w http.ResponseWriter, r *http.Request, t *stream, batch bool) {
	defer s.forget(t)
	reader, seq := t.attach(), uint64(0)
	var answers []Raw
	for done := false; !done; {
		var events []event
		events, done = t.next(r.Context(), reader, seq)
		if r.Context().Err() != nil {
			return // the client is gone
		}
		for _, e := range events {
			seq = e.seq
			if m, err := protocol.Parse(e.message); err == nil && m.IsResponse() {
				answers = append(answers, Raw(e.message))
			}
		}
	}
	switch {
	case len(answers) == 0: // cancelled
		w.WriteHeader(http.StatusAccepted)
	case batch:
		writeJSON(w, http.StatusOK, protocol.Array(answers))
	default:
		s.answer(w, answers[0])
	}
}

// answer writes the one answer to a request. In the stateless era its HTTP status
// tells of an error.
func (s *httpSession) answer(w http.ResponseWriter, message []byte) {
	if m, err := protocol.Parse(message); s.guest && err == nil && m.Error != nil {
		writeJSON(w, statusOf(protocol.ParseError(m.Error).Code), message)
		return
	}
	writeJSON(w, http.StatusOK, message)
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
		ctx, cancel := context.WithTimeout(r.Context(), sse.KeepAlive)
		events, done := t.next(ctx, reader, seq)
		cancel()
		for _, e := range events {
			id := eventID(t.id, e.seq)
			if s.guest {
				id = ""
			}
			if out.Event("message", id, e.message) != nil {
				return
			}
			seq = e.seq
		}
		switch {
		case r.Context().Err() != nil || s.life.Err() != nil:
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
