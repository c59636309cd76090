// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	callbackPath = "/callback"
	pageTime     = 2 * time.Second // for the browser to get its page
	headerTime   = 10 * time.Second
)

// A waiter waits at an address of this machine for what a browser brings back
// (RFC 8252, section 7.3).
type waiter struct {
	listener net.Listener
	server   *http.Server
	redirect string
	state    string // set before serve

	answers chan url.Values // takes one
	taken   sync.Once
	end     chan struct{} // closed by conclude
	outcome error         // set before that
	serving sync.WaitGroup
}

// listen opens the address; port 0 is a free one.
func listen(port int) (*waiter, error) {
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("waiting for the browser: %w; free the port, or set another callbackPort", err)
	}
	w := &waiter{
		listener: l, redirect: "http://" + l.Addr().String() + callbackPath,
		answers: make(chan url.Values, 1), end: make(chan struct{}),
	}
	w.server = &http.Server{Handler: w, ReadHeaderTimeout: headerTime, MaxHeaderBytes: 64 << 10}
	return w, nil
}

// serve begins to wait.
func (w *waiter) serve() {
	w.serving.Go(func() { // ends with close, which waits for it
		_ = w.server.Serve(w.listener) // it ends with an error always
	})
}

// wait returns the first answer that has the state.
func (w *waiter) wait(ctx Context, pasted <-chan string) (url.Values, error) {
	select {
	case answer := <-w.answers:
		return answer, nil
	case text := <-pasted:
		return w.parse(text)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// parse reads an address that a person pasted.
func (w *waiter) parse(text string) (url.Values, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.RawQuery == "" {
		return nil, errors.New("what was pasted is not the address that the browser was sent to")
	}
	answer := u.Query()
	if !w.mine(answer) {
		return nil, errors.New("what was pasted is the answer to another login: its state is not the one that was sent")
	}
	return answer, nil
}

// mine reports whether an answer has the state that was sent. Any web page can
// send a browser here; only the answer to this login knows that.
func (w *waiter) mine(answer url.Values) bool {
	return w.state != "" && subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(w.state)) == 1
}

// ServeHTTP implements http.Handler.
func (w *waiter) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	answer := r.URL.Query()
	switch {
	case r.URL.Path != callbackPath || r.Method != http.MethodGet:
		http.NotFound(to, r)
		return
	case !w.mine(answer):
		page(to, http.StatusBadRequest, "Not logged in",
			"This is not the answer to the login that garra waits for. Open the address that garra has printed.")
		return
	}
	w.taken.Do(func() { w.answers <- answer })
	select {
	case <-w.end:
	case <-r.Context().Done():
		return
	}
	if w.outcome != nil {
		page(to, http.StatusBadRequest, "Not logged in", w.outcome.Error()+".")
		return
	}
	page(to, http.StatusOK, "Logged in", "garra is logged in. You can close this page.")
}

// page writes a page without anything that runs.
func page(to http.ResponseWriter, status int, title, text string) {
	h := to.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	to.WriteHeader(status)
	// A browser that has gone needs no page.
	_, _ = fmt.Fprintf(to, "<!doctype html><meta charset=\"utf-8\"><title>%s</title><h1>%s</h1><p>%s</p>\n",
		html.EscapeString(title), html.EscapeString(title), html.EscapeString(text))
}

// conclude tells the browser how the login ended.
func (w *waiter) conclude(outcome error) {
	w.outcome = outcome
	close(w.end)
}

// close gives the browser a moment to get its page, and ends.
func (w *waiter) close() {
	ctx, cancel := context.WithTimeout(context.Background(), pageTime)
	defer cancel()
	if w.server.Shutdown(ctx) != nil {
		_ = w.server.Close() // the browser doesn't read
	}
	_ = w.listener.Close() // for when nothing was served; else it is closed
	w.serving.Wait()
}
