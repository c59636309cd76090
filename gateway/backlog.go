// SPDX-License-Identifier: Apache-2.0

package gateway

import "sync"

// A keep counts what is kept for clients that are not connected, over all
// sessions: each of them may keep little, and there may be many. It is safe for
// concurrent use.
type keep struct {
	mu    sync.Mutex // guards all below, and every backlog's bytes; no other lock is taken under it
	bytes int
	ages  uint64 // of streams that were made
}

// age is that of a new stream.
func (k *keep) age() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ages++
	return k.ages
}

// size is how many bytes are kept.
func (k *keep) size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bytes
}

// over reports whether so much is kept that something must go.
func (k *keep) over() bool { return k.size() > keptBytes }

// A backlog counts the part of one session.
type backlog struct {
	keep  *keep
	shed  func() // drops what is over the bound of keep; nil for a session of one request
	bytes int
	ended bool // the session has ended: what is left of it goes with the requests that run
}

// add counts bytes that are kept from now on, or no longer when n is negative.
func (b *backlog) add(n int) {
	b.keep.mu.Lock()
	defer b.keep.mu.Unlock()
	b.bytes += n
	if !b.ended {
		b.keep.bytes += n
	}
}

// load is how many bytes are kept.
func (b *backlog) load() int {
	b.keep.mu.Lock()
	defer b.keep.mu.Unlock()
	return b.bytes
}

// end takes the session out of what all of them keep.
func (b *backlog) end() {
	b.keep.mu.Lock()
	defer b.keep.mu.Unlock()
	if !b.ended {
		b.ended = true
		b.keep.bytes -= b.bytes
	}
}

// bound makes room when more is kept over all sessions than may be. It takes
// locks of sessions and streams.
func (b *backlog) bound() {
	if b.shed != nil && b.keep.over() {
		b.shed()
	}
}

// shed drops streams until all sessions together keep no more than they may: of
// the principal that keeps most, so that one who leaves a lot behind takes
// nothing from another.
func (h *httpSessions) shed() {
	h.shedding.Lock()
	defer h.shedding.Unlock()
	for h.kept.over() {
		if !h.shedOne() {
			return // a client came back meanwhile; whoever keeps more looks again
		}
	}
}

// shedOne drops the oldest stream of the principal that keeps most. One whose
// request runs goes only when no other is left.
func (h *httpSessions) shedOne() bool {
	var from *httpSession
	var oldest *stream
	oldestWaits := false
	for _, s := range h.ofGreatest() {
		for _, t := range s.allStreams() {
			something, waits := t.keeps()
			better := oldest == nil || (oldestWaits && !waits) || (oldestWaits == waits && t.age < oldest.age)
			if something && better {
				from, oldest, oldestWaits = s, t, waits
			}
		}
	}
	return oldest != nil && from.dropUnread(oldest)
}

// ofGreatest are the sessions of the principal that keeps most.
func (h *httpSessions) ofGreatest() []*httpSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes, greatest := make(map[string]int), ""
	for _, s := range h.byID {
		bytes[s.principal] += s.backlog.load()
	}
	for principal, n := range bytes {
		if n > bytes[greatest] {
			greatest = principal
		}
	}
	var sessions []*httpSession
	for _, s := range h.byID {
		if s.principal == greatest && s.backlog.load() > 0 {
			sessions = append(sessions, s)
		}
	}
	return sessions
}
