// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
)

const (
	sessionIdle = time.Hour // without a request and an open stream, a session ends
	maxSessions = 1000      // of one principal over HTTP; past it the one unused for longest ends
)

// httpSessions are the sessions over HTTP. They are safe for concurrent use.
type httpSessions struct {
	gateway *Gateway
	kept    keep

	shedding sync.Mutex // held by the one that drops what is over the bound

	mu   sync.Mutex // guards byID
	byID map[string]*httpSession
}

// An httpSession is a session with the streams that lead to its client.
type httpSession struct {
	*Session
	standing *stream // for what belongs to no request
	backlog  backlog // of all streams
	guest    bool    // of one request of the stateless era: nothing can be resumed

	mu      sync.Mutex // guards all below
	streams map[string]*stream
	order   []string // of streams, oldest first
	next    uint64
	used    time.Time
}

func newHTTPSessions(g *Gateway) *httpSessions {
	return &httpSessions{gateway: g, byID: make(map[string]*httpSession)}
}

// open begins a session.
func (h *httpSessions) open(v view, principal string) *httpSession {
	s := &httpSession{used: time.Now(), backlog: backlog{keep: &h.kept, shed: h.shed}}
	s.standing = newStream("0", -1, &s.backlog)
	s.streams = map[string]*stream{s.standing.id: s.standing}
	s.Session = h.gateway.open(v, principal, s.standing)
	h.mu.Lock()
	h.byID[s.id] = s
	h.mu.Unlock()
	go h.watch(s) // ends with the session
	h.evict(s)
	return s
}

// watch ends a session that is not used any more, and forgets one that ended.
func (h *httpSessions) watch(s *httpSession) {
	timer := time.NewTimer(sessionIdle)
	defer timer.Stop()
	for {
		select {
		case <-s.life.Done():
			h.mu.Lock()
			delete(h.byID, s.id)
			h.mu.Unlock()
			s.backlog.end()
			s.standing.finish()
			return
		case <-timer.C:
			if left := sessionIdle - s.unused(time.Now()); left > 0 {
				timer.Reset(left)
			} else {
				s.close()
			}
		}
	}
}

// evict makes room for a session when its principal has too many: the one of
// them ends that was unused for longest. One in use never does.
func (h *httpSessions) evict(added *httpSession) {
	var oldest *httpSession
	now, longest := time.Now(), time.Duration(0)
	count := 0
	h.mu.Lock()
	for _, s := range h.byID {
		if s.principal != added.principal {
			continue
		}
		count++
		if unused := s.unused(now); unused > longest && s != added {
			oldest, longest = s, unused
		}
	}
	h.mu.Unlock()
	if count > maxSessions && oldest != nil {
		oldest.close()
	}
}

func (h *httpSessions) get(id string) *httpSession {
	h.mu.Lock()
	s := h.byID[id]
	h.mu.Unlock()
	if s == nil || s.life.Err() != nil {
		return nil
	}
	s.touch()
	return s
}

func (s *httpSession) touch() {
	s.mu.Lock()
	s.used = time.Now()
	s.mu.Unlock()
}

// unused is for how long nothing has happened in the session by now; 0 while a
// client reads one of its streams or a request runs.
func (s *httpSession) unused(now time.Time) time.Duration {
	s.Session.mu.Lock()
	active := s.active
	s.Session.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if active > 0 || s.standing.isRead() {
		return 0
	}
	return now.Sub(s.used)
}

// newStream makes a stream for a POST with so many requests; oneWay is set for a
// client that takes no events.
func (s *httpSession) newStream(requests int, oneWay bool) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	t := newStream(strconv.FormatUint(s.next, 10), requests, &s.backlog)
	t.oneWay, t.age = oneWay, s.backlog.keep.age()
	s.streams[t.id] = t
	s.order = append(s.order, t.id)
	for len(s.order) > maxStreams || s.backlog.load() > backlogBytes/2 { // a client wants the newest back
		i := slices.IndexFunc(s.order, func(id string) bool { return s.streams[id].abandoned() })
		if i < 0 {
			break
		}
		s.dropLocked(i)
	}
	return t
}

// forget drops a stream that was read to its end.
func (s *httpSession) forget(t *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(slices.Index(s.order, t.id))
}

// dropLocked drops the stream at a place in the order; none when it is negative.
func (s *httpSession) dropLocked(i int) {
	if i < 0 {
		return
	}
	s.streams[s.order[i]].drop()
	delete(s.streams, s.order[i])
	s.order = slices.Delete(s.order, i, i+1)
}

// dropUnread drops a stream that no client is connected to, or reports false.
func (s *httpSession) dropUnread(t *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.dropUnread() {
		return false
	}
	s.dropLocked(slices.Index(s.order, t.id)) // the standing one is not in there
	return true
}

// allStreams are the streams that there are.
func (s *httpSession) allStreams() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.streams))
}

// resume finds the stream and the place that an event id names.
func (s *httpSession) resume(last string) (*stream, uint64, error) {
	id, seq, err := parseEventID(last)
	if err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.streams[id]
	switch {
	case t == nil:
		return nil, 0, fmt.Errorf("the stream of event %.40q is over", last)
	case !t.has(seq):
		return nil, 0, fmt.Errorf("event %.40q was never sent", last)
	}
	return t, seq, nil
}

// primes reports whether streams begin with an event without a message, which
// lets a client reconnect from the start (since revision 2025-11-25).
func (s *httpSession) primes() bool {
	s.Session.mu.Lock()
	defer s.Session.mu.Unlock()
	return s.revision >= protocol.Revision20251125
}
