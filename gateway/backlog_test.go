// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

const leftBehind = keptBytes / 8 // of an answer whose client has gone

// leave makes a client ask, get an answer while it is connected, and go.
func (s *httpSession) leave(size int) *stream {
	t := s.newStream(1, false)
	t.connected(1)
	t.push(answer(1, size))
	t.connected(-1)
	return t
}

// resumable reports whether a client may come back to a stream.
func (s *httpSession) resumable(t *stream) bool {
	_, _, err := s.resume(eventID(t.id, 0))
	return err == nil
}

// Many sessions of one principal keep no more than one bound, and take nothing
// from another principal.
func TestAnswersLeftInManySessionsAreBounded(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	h := newHTTPSessions(g)
	open := func(principal string) *httpSession { return h.open(aggregate{g}, principal) }
	bob := open("bob")
	his := bob.leave(leftBehind)
	running := open("ann")
	waits := running.newStream(2, false) // older than what is dropped, but it is still answered
	waits.push(answer(1, 1000))
	var sessions []*httpSession
	var streams []*stream
	for i := range 20 {
		s := open("ann")
		left := s.newStream(1, false)
		if i%2 == 0 {
			left.push(answer(1, leftBehind))
		} else {
			s.forget(left)
			left = s.leave(leftBehind)
		}
		if h.kept.over() {
			t.Fatalf("%d bytes are kept after %d answers", h.kept.size(), i+1)
		}
		sessions, streams = append(sessions, s), append(streams, left)
	}
	if !bob.resumable(his) || !running.resumable(waits) {
		t.Error("what another principal left, or what is still answered, was dropped")
	}
	for i, s := range sessions {
		if want := i >= 14; s.resumable(streams[i]) != want {
			t.Errorf("stream %d can be resumed: %t", i, !want)
		}
	}

	// A client that comes back takes its answer out of the bound, and the end of
	// a session all that is kept for it.
	before := h.kept.size()
	streams[19].connected(1)
	if h.kept.size() > before-leftBehind {
		t.Errorf("%d bytes are kept, %d before a client came back", h.kept.size(), before)
	}
	for _, s := range append(sessions, running, bob) {
		s.close()
	}
	for deadline := time.Now().Add(time.Minute); h.kept.size() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are kept for nobody", h.kept.size())
		}
	}
	streams[19].connected(-1)
	if kept := h.kept.size(); kept != 0 {
		t.Errorf("%d bytes are kept of a session that has ended", kept)
	}
}

// A stream that is answered still goes when there is nothing else to drop.
func TestWhatIsLeftOfRequestsThatRunIsBounded(t *testing.T) {
	g := New(Options{})
	defer g.Close()
	h := newHTTPSessions(g)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { // ends when its answer is pushed
			s := h.open(aggregate{g}, "ann")
			batch := s.newStream(2, false)
			batch.connected(1)
			batch.push(answer(1, leftBehind))
			batch.connected(-1)
		})
	}
	all.Wait()
	if kept := h.kept.size(); kept > keptBytes || kept < keptBytes/2 {
		t.Errorf("%d bytes are kept", kept)
	}
}
