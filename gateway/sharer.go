// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"maps"
	"math"
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
	told     map[string]string            // by share: the log level that it was told last
	running  map[string]map[string]int    // by share: how many requests with a log level of their own run
	restored map[string]*source.Hello     // by share: of the process that was told all
}

func newSharer(u *upstream) *sharer {
	return &sharer{
		upstream: u, subs: make(map[string]map[*Session]bool),
		told: make(map[string]string), running: make(map[string]map[string]int),
		restored: make(map[string]*source.Hello),
	}
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
	shared := h.othersLocked(uri, x.session)
	h.mu.Unlock()
	if shared {
		return Raw("{}"), nil
	}
	return h.upstream.forward(ctx, x, x.params)
}

// othersLocked reports whether another session of the same share subscribed.
func (h *sharer) othersLocked(uri string, s *Session) bool {
	share := h.upstream.share(s)
	for other := range h.subs[uri] {
		if other != s && h.upstream.share(other) == share {
			return true
		}
	}
	return false
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
	share := h.upstream.share(x.session)
	level := h.level(share)
	h.mu.Lock()
	known := h.told[share] == level
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
		h.tell(share, level)
	}
	return result, err
}

// hear has the server log for a request of the stateless era, which names a level
// for itself. A server of the handshake era is told the level, unless it logs as
// much already; it isn't told again at the request's end, since the next one would
// be another change. The function that is returned is to be called then.
func (h *sharer) hear(ctx context.Context, x *exchange) (end func()) {
	if x.envelope == nil || x.envelope.LogLevel == "" {
		return func() {}
	}
	share, wanted := h.upstream.share(x.session), x.envelope.LogLevel
	h.count(share, wanted, 1)
	if src := h.upstream.held(share); src != nil {
		h.raise(ctx, src, share)
	}
	return func() { h.count(share, wanted, -1) }
}

func (h *sharer) count(share, level string, change int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[share] == nil {
		h.running[share] = make(map[string]int)
	}
	h.running[share][level] += change
	if h.running[share][level] == 0 {
		delete(h.running[share], level)
	}
	if len(h.running[share]) == 0 {
		delete(h.running, share)
	}
}

// raise tells a server of the handshake era to log more, if it doesn't log enough.
func (h *sharer) raise(ctx context.Context, src source.Source, share string) {
	hello := src.Status().Hello
	if hello == nil || hello.Revision.Stateless() || !hello.Declares("logging") {
		return
	}
	level := h.level(share)
	h.mu.Lock()
	enough := h.told[share] != "" && severity(h.told[share]) <= severity(level)
	h.mu.Unlock()
	if enough {
		return
	}
	params := protocol.Object{}
	params.Set("level", protocol.Quote(level))
	if _, err := src.Call(ctx, &source.Call{Method: protocol.MethodSetLevel, Params: params.Raw()}); err != nil {
		h.upstream.warn("setting the log level for a call: " + err.Error())
		return
	}
	h.tell(share, level)
}

func (h *sharer) tell(share, level string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told[share] = level
}

// forget is told that a share is no more.
func (h *sharer) forget(share string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.told, share)
	delete(h.restored, share)
}

// level is the least severe one that any session of a share wants, or a request
// that names one; empty when none has said.
func (h *sharer) level(share string) string {
	lowest := ""
	for _, s := range h.upstream.gateway.allSessions() {
		level := s.logLevel()
		if level != "" && s.view.covers(h.upstream.name) && h.upstream.share(s) == share &&
			(lowest == "" || severity(level) < severity(lowest)) {
			lowest = level
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for level := range h.running[share] {
		if lowest == "" || severity(level) < severity(lowest) {
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
		if sessions[s] {
			if !h.othersLocked(uri, s) {
				last = append(last, uri)
			}
			h.dropLocked(uri, s)
		}
	}
	h.mu.Unlock()
	if len(last) == 0 {
		return
	}
	src := h.upstream.held(h.upstream.share(s))
	if src == nil || src.Status().State != source.Ready {
		return
	}
	go h.each(src, protocol.MethodUnsubscribe, last) // ends with the server's answers, or the upstream
}

// restore tells what was started, or started again, what its clients want: once.
func (h *sharer) restore(share string) {
	src := h.upstream.held(share)
	if src == nil {
		return
	}
	hello := src.Status().Hello
	if hello == nil {
		return
	}
	h.mu.Lock()
	done := h.restored[share] == hello
	h.restored[share] = hello
	uris := h.wantedLocked(share)
	h.mu.Unlock()
	if done {
		return
	}
	h.each(src, protocol.MethodSubscribe, uris)
	level := h.level(share)
	if level == "" || !hello.Declares("logging") {
		h.tell(share, "")
		return
	}
	o := protocol.Object{}
	o.Set("level", protocol.Quote(level))
	h.callQuietly(src, protocol.MethodSetLevel, o.Raw())
	h.tell(share, level)
}

// subscribers returns the shares that have subscriptions.
func (h *sharer) subscribers() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make(map[string]bool)
	for _, sessions := range h.subs {
		for s := range sessions {
			found[h.upstream.share(s)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// wantedLocked returns the resources to which sessions of a share subscribed.
func (h *sharer) wantedLocked(share string) (uris []string) {
	for uri, sessions := range h.subs {
		for s := range sessions {
			if h.upstream.share(s) == share {
				uris = append(uris, uri)
				break
			}
		}
	}
	slices.Sort(uris)
	return uris
}

func (h *sharer) each(src source.Source, method string, uris []string) {
	for _, uri := range uris {
		o := protocol.Object{}
		o.Set("uri", protocol.Quote(uri))
		h.callQuietly(src, method, o.Raw())
	}
}

// callQuietly makes a call for which no client waits; what goes wrong is warned of.
func (h *sharer) callQuietly(src source.Source, method string, params Raw) {
	_, err := src.Call(h.upstream.life, &source.Call{Method: method, Params: params})
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

// wantsLog reports whether a log message of some severity is severe enough for the
// session; unset is the level of a client that set none, empty for everything.
func (s *Session) wantsLog(unset string, severe int) bool {
	wants := s.logLevel()
	if wants == "" {
		wants = unset
	}
	return severe >= severity(wants)
}

// severityOf returns how severe a log message is. One that doesn't say is for everybody.
func severityOf(params Raw) int {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return math.MaxInt
	}
	level, err := protocol.Text(obj.Get("level"))
	if err != nil {
		return math.MaxInt
	}
	return severity(level)
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
