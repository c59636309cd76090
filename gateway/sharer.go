// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// logLevels are the levels of log messages, least severe first (MCP
// specification, "Logging", after RFC 5424).
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// severity orders log levels; what is no level is less severe than any.
func severity(level string) int { return slices.Index(logLevels(), level) }

// A sharer keeps what several sessions want of one server, which knows only one
// client: who subscribed to which resource, and the log level of the session
// that wants most. It is safe for concurrent use.
type sharer struct {
	upstream *upstream

	mu       sync.Mutex                   // guards all below
	subs     map[string]map[*Session]bool // by URI
	told     string                       // the log level that the server was told last
	restored uint64                       // generation of the source that was told all
}

func newSharer(u *upstream) *sharer {
	return &sharer{upstream: u, subs: make(map[string]map[*Session]bool)}
}

// subscribe passes a subscription on and remembers it. One that others have is
// passed on too: the server says whether it is one.
func (h *sharer) subscribe(ctx context.Context, x *exchange, uri string) (Raw, error) {
	result, err := h.upstream.forward(ctx, x, x.params)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	if h.subs[uri] == nil {
		h.subs[uri] = make(map[*Session]bool)
	}
	h.subs[uri][x.session] = true
	h.mu.Unlock()
	if x.session.life.Err() != nil { // it may have left before it came
		h.leave(x.session)
	}
	return result, nil
}

// unsubscribe passes the end of a subscription on when nobody has one any more.
func (h *sharer) unsubscribe(ctx context.Context, x *exchange, uri string) (Raw, error) {
	h.mu.Lock()
	h.dropLocked(uri, x.session)
	shared := len(h.subs[uri]) > 0
	h.mu.Unlock()
	if shared {
		return Raw("{}"), nil
	}
	return h.upstream.forward(ctx, x, x.params)
}

func (h *sharer) dropLocked(uri string, s *Session) {
	delete(h.subs[uri], s)
	if len(h.subs[uri]) == 0 {
		delete(h.subs, uri)
	}
}

// setLevel tells the server the level of the session that wants most, if that
// isn't what it was told last. The session has noted its own before.
func (h *sharer) setLevel(ctx context.Context, x *exchange) (Raw, error) {
	level := h.level()
	h.mu.Lock()
	known := h.told == level
	h.mu.Unlock()
	if known {
		return Raw("{}"), nil
	}
	params := &protocol.Object{}
	if obj, err := protocol.ParseObject(x.params); err == nil {
		params = obj
	}
	params.Set("level", protocol.Quote(level))
	result, err := h.upstream.forward(ctx, x, params.Raw())
	if err == nil {
		h.tell(level)
	}
	return result, err
}

func (h *sharer) tell(level string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = level
}

// level is the least severe one that any session of the server wants; empty
// when none has said.
func (h *sharer) level() string {
	lowest := ""
	for _, s := range h.upstream.gateway.allSessions() {
		if level := s.logLevel(); s.view.covers(h.upstream.name) && level != "" &&
			(lowest == "" || severity(level) < severity(lowest)) {
			lowest = level
		}
	}
	return lowest
}

// leave forgets a session; the server is told of subscriptions that ended.
func (h *sharer) leave(s *Session) {
	h.mu.Lock()
	var last []string
	for uri, sessions := range h.subs {
		if sessions[s] && len(sessions) == 1 {
			last = append(last, uri)
		}
		if sessions[s] {
			h.dropLocked(uri, s)
		}
	}
	h.mu.Unlock()
	if len(last) == 0 || h.upstream.src.Status().State != source.Ready {
		return
	}
	go h.each(protocol.MethodUnsubscribe, last) // ends with the server's answers, or the upstream
}

// restore tells a server that was started, or started again, what its clients
// want: once.
func (h *sharer) restore() {
	hello := h.upstream.src.Status().Hello
	if hello == nil {
		return
	}
	h.mu.Lock()
	done := h.restored == hello.Generation
	h.restored = hello.Generation
	uris := slices.Sorted(maps.Keys(h.subs))
	h.mu.Unlock()
	if done {
		return
	}
	h.each(protocol.MethodSubscribe, uris)
	level := h.level()
	if level == "" || !hello.Declares("logging") {
		h.tell("")
		return
	}
	o := protocol.Object{}
	o.Set("level", protocol.Quote(level))
	h.callQuietly(protocol.MethodSetLevel, o.Raw())
	h.tell(level)
}

func (h *sharer) each(method string, uris []string) {
	for _, uri := range uris {
		o := protocol.Object{}
		o.Set("uri", protocol.Quote(uri))
		h.callQuietly(method, o.Raw())
	}
}

// callQuietly makes a call for which no client waits; what goes wrong is warned of.
func (h *sharer) callQuietly(method string, params Raw) {
	_, err := h.upstream.src.Call(h.upstream.life, &source.Call{Method: method, Params: params})
	if err != nil && h.upstream.life.Err() == nil {
		h.upstream.warn(method + " after a change of clients or a restart: " + err.Error())
	}
}

// updated returns the sessions that subscribed to a resource, or to one that it
// is a part of.
func (h *sharer) updated(uri string) []*Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make(map[*Session]bool)
	for subscribed, sessions := range h.subs {
		if uri == subscribed || strings.HasPrefix(uri, strings.TrimSuffix(subscribed, "/")+"/") {
			maps.Copy(found, sessions)
		}
	}
	return slices.Collect(maps.Keys(found))
}

// wantsLog reports whether a log message is severe enough for the session; unset
// is the level of a client that set none, empty for everything.
func (s *Session) wantsLog(unset string, params Raw) bool {
	wants := s.logLevel()
	if wants == "" {
		wants = unset
	}
	return severe(params, wants)
}

// severe reports whether a log message is of a level, or a more severe one.
func severe(params Raw, wanted string) bool {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return true
	}
	level, err := protocol.Text(obj.Get("level"))
	return err != nil || severity(level) >= severity(wanted)
}

// logLevel is the level that the client set; empty when it set none.
func (s *Session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// setLevel checks and notes the level of a logging/setLevel request.
func (s *Session) setLevel(params Raw) error {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return protocol.Errorf(protocol.CodeInvalidParams, "logging/setLevel without params")
	}
	level, err := protocol.Text(obj.Get("level"))
	if err != nil || severity(level) < 0 {
		return protocol.Errorf(protocol.CodeInvalidParams, "no log level: %.40s", obj.Get("level"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
	return nil
}
