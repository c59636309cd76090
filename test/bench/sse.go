// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"time"
)

// openSSE begins a session over the HTTP+SSE transport of revision 2024-11-05,
// which some gateways have as their only one: answers come on one stream, and
// each caller has a connection for its requests.
func (e *endpoint) openSSE(callers int) (*session, error) {
	stream, err := e.dial("")
	if err != nil {
		return nil, err
	}
	closers := []io.Closer{stream}
	s := &session{close: func() {
		for _, c := range closers {
			c.Close()
		}
	}}
	lines, err := stream.listen(e)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("opening the stream of %s: %w", e.url, err)
	}
	target, err := nextData(lines)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("reading where to send: %w", err)
	}
	shared := &sharedStream{answers: newInbox()}
	// Ends with the connection, which the session's close closes.
	go shared.read(lines)
	for range callers {
		c, err := e.dial("")
		if err != nil {
			s.close()
			return nil, err
		}
		closers = append(closers, c)
		c.head = e.appendHead(nil, "POST", e.path(string(target)), "")
		s.callers = append(s.callers, &streamCaller{shared, c, waiter{ready: make(chan struct{}, 1)}})
	}
	first := s.callers[0].(*streamCaller)
	if _, err = first.call("initialize", initialize); err == nil {
		_, err = first.http.post([]byte(initialized))
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("beginning a session at %s: %w", e.url, err)
	}
	return s, nil
}

// path returns a reference from the server as the target of a request.
func (e *endpoint) path(reference string) string {
	u, err := e.url.Parse(strings.TrimSpace(reference))
	if err != nil {
		return reference
	}
	return u.RequestURI()
}

// listen opens a stream of events and returns its lines.
func (c *httpCaller) listen(e *endpoint) (*lineReader, error) {
	head := append(e.appendHead(nil, "GET", e.url.RequestURI(), ""), "\r\n"...)
	if _, err := c.conn.Write(head); err != nil {
		return nil, fmt.Errorf("writing: %w", err)
	}
	r, err := readReply(c.in)
	if err != nil {
		return nil, err
	}
	if r.status != 200 || !r.events {
		return nil, fmt.Errorf("status %d and no events", r.status)
	}
	if r.chunked {
		return newLineReader(httputil.NewChunkedReader(c.in)), nil
	}
	return newLineReader(c.in), nil
}

// nextData returns the data of the next event that has some, which is one line.
func nextData(lines *lineReader) ([]byte, error) {
	for {
		line, err := lines.next()
		if err != nil {
			return nil, err
		}
		if data, found := bytes.CutPrefix(line, []byte("data:")); found {
			return bytes.TrimSpace(data), nil
		}
	}
}

// A sharedStream is the stream on which the answers to all callers come.
type sharedStream struct {
	answers *inbox
	id      atomic.Int64
}

func (s *sharedStream) read(lines *lineReader) {
	for {
		data, err := nextData(lines)
		if err != nil {
			s.answers.fail(err)
			return
		}
		s.answers.deliver(data)
	}
}

// A streamCaller posts requests and waits for answers on the stream.
type streamCaller struct {
	stream *sharedStream
	http   *httpCaller
	waiter waiter
}

func (c *streamCaller) call(method, params string) ([]byte, error) {
	id := int(c.stream.id.Add(1))
	c.http.frame = appendRequest(c.http.frame[:0], id, method, params)
	c.stream.answers.expect(id, &c.waiter)
	r, err := c.http.post(c.http.frame)
	if err != nil {
		return nil, fmt.Errorf("request %d: %w", id, err)
	}
	if r.status/100 != 2 {
		return nil, fmt.Errorf("request %d is answered with status %d: %.300s", id, r.status, c.http.body)
	}
	late := time.AfterFunc(patience, func() { c.waiter.ready <- struct{}{} })
	answer, err := c.stream.answers.await(id, &c.waiter)
	if !late.Stop() {
		return nil, errors.Join(fmt.Errorf("request %d is not answered within %s", id, patience), err)
	}
	return answer, err
}
