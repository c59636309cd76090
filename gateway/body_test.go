// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// postOf is a POST of a body.
func postOf(body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", body)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// Large bodies have one bound: what finds no room is refused in words that a
// client reads, and a small one is read whatever the large ones take.
func TestLargeBodiesHaveOneBound(t *testing.T) {
	const large = 3 << 20
	text := strings.Repeat("x", large)
	h := &httpHandler{bodies: newShares(2*large, time.Millisecond)}
	read := func(body io.Reader) (done func(), w *httptest.ResponseRecorder) {
		w = httptest.NewRecorder()
		got, done := h.readBody(w, postOf(body))
		if done != nil && len(got) == 0 {
			t.Error("nothing was read")
		}
		return done, w
	}
	first, _ := read(strings.NewReader(text))
	second, _ := read(strings.NewReader(text))
	if first == nil || second == nil {
		t.Fatal("bodies that have room are refused")
	}
	refused := strings.NewReader(text)
	third, w := read(refused)
	if refused.Len() > 0 {
		t.Errorf("%d bytes are left, which the client would fail to send", refused.Len())
	}
	var answer struct {
		Error struct{ Message string }
	}
	err := json.Unmarshal(w.Body.Bytes(), &answer)
	if third != nil || w.Code != http.StatusServiceUnavailable || err != nil ||
		!strings.Contains(answer.Error.Message, "send it again later") {
		t.Errorf("a body without room: %d %s", w.Code, w.Body)
	}
	if small, w := read(strings.NewReader(text[:smallRequest])); small == nil {
		t.Errorf("a small body: %d %s", w.Code, w.Body)
	}
	if unsaid, w := read(io.MultiReader(strings.NewReader(text))); unsaid != nil || w.Code != 503 {
		t.Errorf("a body whose length isn't said: %d", w.Code)
	}
	first()
	if again, w := read(strings.NewReader(text)); again == nil {
		t.Errorf("there is room again: %d %s", w.Code, w.Body)
	}
	if cut, w := read(io.MultiReader(strings.NewReader(text), strings.NewReader("x"))); cut != nil || w.Code != 503 {
		t.Errorf("no room: %d", w.Code)
	}
}

// Whoever waits for a share gets it in turn, and what is given back is all there.
func TestSharesAreWaitedForInTurn(t *testing.T) {
	s := newShares(10, time.Minute)
	s.take(t.Context(), 6)
	turns := make(chan int, 2)
	for i, size := range []int{8, 2} {
		go func() { // ends with the share
			s.take(t.Context(), size)
			turns <- size
		}()
		for waiting := 0; waiting <= i; runtime.Gosched() {
			s.mu.Lock()
			waiting = len(s.waiting)
			s.mu.Unlock()
		}
	}
	s.give(6)
	<-turns
	<-turns
	s.give(10)
	if s.free != 10 {
		t.Errorf("%d are free", s.free)
	}
}

// A body whose length is known is not copied again and again.
func TestAKnownLengthIsReadInPlace(t *testing.T) {
	const large = 32 << 20
	h := &httpHandler{bodies: newShares(bodyBytes, shareWait)}
	r := postOf(bytes.NewReader(make([]byte, large)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body, done := h.readBody(httptest.NewRecorder(), r)
	runtime.ReadMemStats(&after)
	if done == nil || len(body) != large {
		t.Fatalf("%d bytes were read", len(body))
	}
	done()
	if took := after.TotalAlloc - before.TotalAlloc; took > large+8*smallRequest {
		t.Errorf("reading %d bytes took %d", large, took)
	}
}
