// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
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
	whose := func(r *http.Request) string { return r.Header.Get("Whose") }
	h := &httpHandler{bodies: newShares(2*large, time.Millisecond), principal: whose}
	who := "a"
	read := func(body io.Reader) (done func(), w *httptest.ResponseRecorder) {
		w = httptest.NewRecorder()
		r := postOf(body)
		r.Header.Set("Whose", who)
		got, done := h.readBody(w, r)
		if done != nil && len(got) == 0 {
			t.Error("nothing was read")
		}
		return done, w
	}
	first, _ := read(strings.NewReader(text))
	if more, w := read(strings.NewReader(text)); more != nil || w.Code != http.StatusServiceUnavailable {
		t.Errorf("more than a half: %d", w.Code)
	}
	who = "b"
	second, _ := read(strings.NewReader(text))
	if first == nil || second == nil {
		t.Fatal("bodies that have room are refused")
	}
	who = "c"
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
	s := newShares(20, time.Minute)
	s.take(t.Context(), "a", 10)
	s.take(t.Context(), "b", 6)
	turns := make(chan int, 3)
	for i, want := range []share{{who: "b", size: 7}, {who: "c", size: 8}, {who: "d", size: 2}} {
		go func() { // ends with the share
			s.take(t.Context(), want.who, want.size)
			turns <- want.size
		}()
		for waiting := 0; waiting <= i; runtime.Gosched() {
			s.mu.Lock()
			waiting = len(s.waiting)
			s.mu.Unlock()
		}
	}
	s.give("a", 10) // of b, which has too much, nobody waits for the end
	if got := <-turns + <-turns; got != 10 {
		t.Errorf("%d are taken by those that wait for others", got)
	}
	s.give("c", 8)
	s.give("b", 6)
	<-turns
	s.give("b", 7)
	s.give("d", 2)
	if s.free != 20 || len(s.taken) > 0 {
		t.Errorf("%d are free, %v taken", s.free, s.taken)
	}
}

// A body whose length is known is not copied again and again.
func TestAKnownLengthIsReadInPlace(t *testing.T) {
	const large = 32 << 20
	h := &httpHandler{bodies: newShares(bodyBytes, shareWait), principal: func(*http.Request) string { return "" }}
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

// A client that stands still in a body loses its place after a while; a slow one is
// read to the end.
func TestABodyThatStandsStillEnds(t *testing.T) {
	for pause, want := range map[time.Duration]int{
		stallLimit - time.Second: http.StatusOK, stallLimit + time.Second: http.StatusRequestTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := uploadSlowly(t, pause); got != want {
				t.Errorf("a pause of %s: %d, want %d", pause, got, want)
			}
		})
	}
}

// uploadSlowly posts a large body with pauses, and returns the status of the answer.
func uploadSlowly(t *testing.T, pause time.Duration) int {
	t.Helper()
	h := &httpHandler{bodies: newShares(bodyBytes, shareWait), principal: func(*http.Request) string { return "a" }}
	client, served := net.Pipe()
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, done := h.readBody(w, r); done != nil {
			done()
		}
	})}
	once := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	once.conn <- served
	go server.Serve(once) // ends with Close
	defer func() {
		client.Close()
		server.Close()
		<-time.After(time.Hour) // of synctest, for what still runs to end
	}()
	go func() { // ends with the connection
		piece := strings.Repeat("x", smallRequest)
		fmt.Fprintf(client, "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"+
			"Content-Length: %d\r\n\r\n", 3*len(piece))
		for range 3 {
			<-time.After(pause)
			io.WriteString(client, piece)
		}
	}()
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.bodies.mu.Lock()
	defer h.bodies.mu.Unlock()
	if h.bodies.free != bodyBytes {
		t.Errorf("%d bytes are still held", bodyBytes-h.bodies.free)
	}
	return answer.StatusCode
}

// A oneConn is a listener to which one connection comes.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error { close(l.closed); return nil }

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{} }
