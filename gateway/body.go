// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
)

const (
	smallRequest = 1 << 20          // up to how many bytes of a body are read at once, on a client's word
	bodyBytes    = 256 << 20        // of larger bodies that are read, and in work, at the same time
	shareWait    = 10 * time.Second // for other bodies to be done with
	stallLimit   = 30 * time.Second // for a client to send some more of a body
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
	src := http.MaxBytesReader(w, steadyBody{r.Body, http.NewResponseController(w)}, protocol.DefaultMaxFrame)
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
	if errors.Is(err, os.ErrDeadlineExceeded) {
		refuse(w, http.StatusRequestTimeout, protocol.CodeInvalidRequest,
			"nothing of the message came for %s; it was not read to its end, and nothing was done", stallLimit)
		return nil, nil
	}
	refuse(w, http.StatusBadRequest, protocol.CodeParse, "reading the message: %v", err)
	return nil, nil
}

// A steadyBody is a body that fails with os.ErrDeadlineExceeded when its client
// stands still, and so holds what is shared, or a connection, for nothing.
type steadyBody struct {
	io.ReadCloser
	controller *http.ResponseController
}

// Read implements io.Reader.
func (b steadyBody) Read(p []byte) (int, error) {
	// A connection without deadlines is one of tests. What is read after the body is
	// the client's next request, or that it goes.
	_ = b.controller.SetReadDeadline(time.Now().Add(stallLimit))
	defer func() { _ = b.controller.SetReadDeadline(time.Time{}) }()
	return b.ReadCloser.Read(p)
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
	who := h.principal(r)
	if !h.bodies.take(r.Context(), who, size) {
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
	return func() { h.bodies.give(who, size) }
}

// shares are bytes that are taken by one, and waited for by the next in the order
// in which they came. Nobody has more than a half: who wants that waits for itself,
// and nobody else does. They are safe for concurrent use.
type shares struct {
	wait time.Duration // at most, for each
	half int

	mu      sync.Mutex // guards all below
	free    int
	taken   map[string]int // by whom; without those who have nothing
	waiting []*share       // oldest first
}

// A share is what somebody waits for.
type share struct {
	who   string
	size  int
	taken chan struct{} // closed when it is there
}

func newShares(all int, wait time.Duration) *shares {
	return &shares{free: all, half: all / 2, wait: wait, taken: make(map[string]int)}
}

// take takes a share, which is there before the wait and ctx end, or reports false.
func (s *shares) take(ctx context.Context, who string, size int) bool {
	want := &share{who, size, make(chan struct{})}
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
func (s *shares) give(who string, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += size
	if s.taken[who] -= size; s.taken[who] == 0 {
		delete(s.taken, who)
	}
	s.serveLocked()
}

// serveLocked hands out what is free.
func (s *shares) serveLocked() {
	stuck := false // one waits for others, which no later one may delay
	s.waiting = slices.DeleteFunc(s.waiting, func(w *share) bool {
		if stuck || s.taken[w.who]+w.size > s.half {
			return false
		}
		if stuck = w.size > s.free; stuck {
			return false
		}
		s.free -= w.size
		s.taken[w.who] += w.size
		close(w.taken)
		return true
	})
}
