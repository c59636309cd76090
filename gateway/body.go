// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
)

const (
	smallRequest = 1 << 20          // up to how many bytes of a body are read at once, on a client's word
	bodyBytes    = 256 << 20        // of larger bodies that are read, and in work, at the same time
	shareWait    = 10 * time.Second // for other bodies to be done with
)

// readBody reads the body of a POST, or answers what is wrong with it and returns
// no done. done is called when nothing of the request is in work any more.
func (h *httpHandler) readBody(w http.ResponseWriter, r *http.Request) (body []byte, done func()) {
	if kind := r.Header.Get("Content-Type"); kind != "application/json" && !isJSON(kind) {
		refuse(w, http.StatusUnsupportedMediaType, protocol.CodeInvalidRequest,
			"POST needs Content-Type: application/json")
		return nil, nil
	}
	if !acceptsBoth(r) && !accepts(r, "application/json") && !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, protocol.CodeInvalidRequest,
			"POST needs Accept: application/json, text/event-stream")
		return nil, nil
	}
	var text bytes.Buffer
	if known := r.ContentLength; known > 0 && known <= protocol.DefaultMaxFrame {
		text.Grow(int(min(known, smallRequest)) + bytes.MinRead)
	}
	src := http.MaxBytesReader(w, r.Body, protocol.DefaultMaxFrame)
	_, err := text.ReadFrom(io.LimitReader(src, smallRequest+1))
	if err == nil && text.Len() <= smallRequest {
		return text.Bytes(), func() {}
	}
	if err == nil {
		if done = h.share(w, r, &text, src); done == nil {
			return nil, nil
		}
		if _, err = text.ReadFrom(src); err == nil {
			return text.Bytes(), done
		}
		done()
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		refuse(w, http.StatusRequestEntityTooLarge, protocol.CodeInvalidRequest,
			"the message is over %d bytes", tooLarge.Limit)
		return nil, nil
	}
	refuse(w, http.StatusBadRequest, protocol.CodeParse, "reading the message: %v", err)
	return nil, nil
}

// share makes room for the rest of a large body, or answers that there is none and
// returns nil; done gives it back. All of it is taken at once: bodies of which each
// holds a part would wait for each other.
func (h *httpHandler) share(
	w http.ResponseWriter, r *http.Request, text *bytes.Buffer, rest io.Reader,
) (done func()) {
	known := min(r.ContentLength, protocol.DefaultMaxFrame)
	size := int(known)
	if known < 0 {
		size = protocol.DefaultMaxFrame // the client doesn't say
	}
	if !h.bodies.take(r.Context(), size) {
		_, _ = io.Copy(io.Discard, rest) // a client reads no answer before it has sent everything
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, protocol.CodeInternal,
			"nothing was done: other requests of over %d bytes are in work, and there is no room for this one; "+
				"send it again later, or send less at a time", smallRequest)
		return nil
	}
	if known > 0 { // growing by and by would copy it again and again
		*text = *bytes.NewBuffer(append(make([]byte, 0, size+bytes.MinRead), text.Bytes()...))
	}
	return func() { h.bodies.give(size) }
}

// shares are bytes that are taken by one, and waited for by the next in the order
// in which they came. They are safe for concurrent use.
type shares struct {
	wait time.Duration // at most, for each

	mu      sync.Mutex // guards all below
	free    int
	waiting []*share // oldest first
}

// A share is what somebody waits for.
type share struct {
	size  int
	taken chan struct{} // closed when it is there
}

func newShares(all int, wait time.Duration) *shares { return &shares{free: all, wait: wait} }

// take takes a share, which is there before the wait and ctx end, or reports false.
func (s *shares) take(ctx context.Context, size int) bool {
	want := &share{size, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, want)
	s.serveLocked()
	s.mu.Unlock()
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-want.taken:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, want)
	if i < 0 {
		return true // it came meanwhile
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.serveLocked() // whoever waited behind it may want less
	return false
}

// give gives a share back.
func (s *shares) give(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += size
	s.serveLocked()
}

// serveLocked hands out what is free.
func (s *shares) serveLocked() {
	for len(s.waiting) > 0 && s.waiting[0].size <= s.free {
		first := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.free -= first.size
		close(first.taken)
	}
}
