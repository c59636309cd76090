// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

// The requests that begin a session.
const (
	initialize  = `{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// A caller makes one call at a time. What a call returns is the message that
// answers it, valid until the next.
type caller interface {
	call(method, params string) ([]byte, error)
}

// A session is an MCP session with callers that can be used at the same time.
type session struct {
	callers []caller
	process *process // what was started for it, or nil
	close   func()
}

// one returns the first caller.
func (s *session) one() caller { return s.callers[0] }

// appendRequest appends a request.
func appendRequest(dst []byte, id int, method, params string) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendInt(dst, int64(id), 10)
	dst = append(dst, `,"method":"`...)
	dst = append(dst, method...)
	dst = append(dst, `","params":`...)
	return append(append(dst, params...), '}')
}

// edge is how many bytes at both ends of a message are looked at.
const edge = 200

// answerID returns the id of an answer, which servers write at its begin or its
// end; -1 when the message is no answer.
func answerID(message []byte) int {
	if id := idAt(message, bytes.Index(message[:min(edge, len(message))], []byte(`"id":`))); id >= 0 {
		return id
	}
	from := max(0, len(message)-edge)
	at := bytes.LastIndex(message[from:], []byte(`"id":`))
	if at < 0 {
		return -1
	}
	return idAt(message, from+at)
}

// idAt reads the number behind the key at a place.
func idAt(message []byte, at int) int {
	if at < 0 {
		return -1
	}
	begin := skipSpace(message, at+len(`"id":`))
	return number(message[begin:skipValue(message, begin)])
}

// check returns what is wrong with an answer.
func check(message []byte, id int) error {
	if got := answerID(message); got != id {
		return fmt.Errorf("request %d is answered by %.300s", id, message)
	}
	head, tail := message[:min(edge, len(message))], message[max(0, len(message)-edge):]
	for _, mark := range []string{`"error":{`, `"isError":true`} {
		if bytes.Contains(head, []byte(mark)) || bytes.Contains(tail, []byte(mark)) {
			return fmt.Errorf("request %d failed: %.300s", id, message)
		}
	}
	return nil
}

// An inbox hands answers that come in any order to whom they are for.
type inbox struct {
	err    error // valid once broken is closed: why no more come
	broken chan struct{}

	mu      sync.Mutex // guards waiting
	waiting map[int]*waiter
}

// A waiter is a caller that waits for an answer, which is copied into its buffer.
type waiter struct {
	answer []byte
	ready  chan struct{}
}

func newInbox() *inbox {
	return &inbox{waiting: make(map[int]*waiter), broken: make(chan struct{})}
}

// expect says who waits for an answer.
func (in *inbox) expect(id int, w *waiter) {
	in.mu.Lock()
	in.waiting[id] = w
	in.mu.Unlock()
}

// deliver hands out a message; one that nobody waits for is dropped.
func (in *inbox) deliver(message []byte) {
	id := answerID(message)
	in.mu.Lock()
	w := in.waiting[id]
	delete(in.waiting, id)
	in.mu.Unlock()
	if w != nil {
		w.answer = append(w.answer[:0], message...)
		w.ready <- struct{}{}
	}
}

// fail ends all waiting.
func (in *inbox) fail(err error) {
	in.err = err
	close(in.broken)
}

// await returns the answer that comes to w.
func (in *inbox) await(id int, w *waiter) ([]byte, error) {
	select {
	case <-w.ready:
		return w.answer, check(w.answer, id)
	case <-in.broken:
		return nil, fmt.Errorf("waiting for answer %d: %w", id, in.err)
	}
}
