// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"
)

// patience bounds each answer.
const patience = 60 * time.Second

// An endpoint is an MCP server over streamable HTTP.
type endpoint struct {
	url     *url.URL
	headers []string // on top of those of the transport, as "Name: value"
}

func newEndpoint(address string, headers []string) (*endpoint, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the address %q is none of http or https", address)
	}
	return &endpoint{u, headers}, nil
}

// openHTTP begins a session, with a connection for each of its callers.
func (e *endpoint) openHTTP(callers int) (*session, error) {
	s := &session{close: func() {}}
	closers := []io.Closer{}
	s.close = func() {
		for _, c := range closers {
			c.Close()
		}
	}
	id := ""
	for i := range callers {
		c, err := e.dial(id)
		if err != nil {
			s.close()
			return nil, err
		}
		c.id = i * 10_000_000 // ids are of the session
		closers = append(closers, c)
		s.callers = append(s.callers, c)
		if i > 0 {
			continue
		}
		if err := c.begin(e); err != nil {
			s.close()
			return nil, fmt.Errorf("beginning a session at %s: %w", e.url, err)
		}
		id = c.session
	}
	return s, nil
}

// dial returns a caller with a connection; session is the id of one that exists,
// or empty.
func (e *endpoint) dial(session string) (*httpCaller, error) {
	c := &httpCaller{endpoint: e, session: session}
	c.head = e.appendHead(nil, "POST", e.url.RequestURI(), session)
	return c, c.connect()
}

// connect opens a connection.
func (c *httpCaller) connect() error {
	u := c.endpoint.url
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	conn, err := net.DialTimeout("tcp", host, patience)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", u, err)
	}
	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: u.Hostname()})
	}
	c.conn, c.in, c.used = conn, bufio.NewReaderSize(conn, 64<<10), time.Now()
	return nil
}

// Close closes the connection.
func (c *httpCaller) Close() error { return c.conn.Close() }

// appendHead appends the head of a request but for its last line.
func (e *endpoint) appendHead(dst []byte, method, target, session string) []byte {
	dst = append(dst, method+" "+target+" HTTP/1.1\r\nHost: "+e.url.Host+"\r\n"...)
	if method == "POST" {
		dst = append(dst, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	} else {
		dst = append(dst, "Accept: text/event-stream\r\n"...)
	}
	if session != "" {
		dst = append(dst, "Mcp-Session-Id: "+session+"\r\nMcp-Protocol-Version: "+revision+"\r\n"...)
	}
	for _, header := range e.headers {
		dst = append(dst, header+"\r\n"...)
	}
	return dst
}

// An httpCaller makes calls over one connection that is kept.
type httpCaller struct {
	endpoint *endpoint
	conn     net.Conn
	in       *bufio.Reader
	used     time.Time // when the connection last was
	head     []byte    // of all requests
	session  string
	request  []byte
	frame    []byte
	body     []byte
	id       int
}

// begin initializes a session, whose id it keeps.
func (c *httpCaller) begin(e *endpoint) error {
	if _, err := c.call("initialize", initialize); err != nil {
		return err
	}
	c.head = e.appendHead(c.head[:0], "POST", e.url.RequestURI(), c.session)
	r, err := c.post([]byte(initialized))
	if err == nil && r.status/100 != 2 {
		err = fmt.Errorf("initialized is answered with status %d: %.200s", r.status, c.body)
	}
	return err
}

func (c *httpCaller) call(method, params string) ([]byte, error) {
	c.id++
	c.frame = appendRequest(c.frame[:0], c.id, method, params)
	r, err := c.post(c.frame)
	if err != nil {
		return nil, fmt.Errorf("request %d: %w", c.id, err)
	}
	if r.status != 200 {
		return nil, fmt.Errorf("request %d is answered with status %d: %.300s", c.id, r.status, c.body)
	}
	message := c.body
	if r.events {
		message = findEvent(c.body, c.id)
	}
	return message, check(message, c.id)
}

// post sends a body and reads the answer's body into c.body.
func (c *httpCaller) post(body []byte) (reply, error) {
	if err := c.send(body); err != nil {
		return reply{}, err
	}
	r, err := readReply(c.in)
	if err != nil {
		return r, err
	}
	if r.session != "" {
		c.session = r.session
	}
	err = c.readBody(r)
	c.used = time.Now()
	return r, err
}

// send writes a request, over a new connection when the last one was not used for
// long: servers close such, Node.js after five seconds.
func (c *httpCaller) send(body []byte) error {
	if time.Since(c.used) > 2*time.Second {
		c.conn.Close()
		if err := c.connect(); err != nil {
			return err
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("setting a deadline: %w", err)
	}
	c.request = append(append(c.request[:0], c.head...), "Content-Length: "...)
	c.request = strconv.AppendInt(c.request, int64(len(body)), 10)
	c.request = append(append(c.request, "\r\n\r\n"...), body...)
	if _, err := c.conn.Write(c.request); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// readBody reads what the head of an answer announces.
func (c *httpCaller) readBody(r reply) error {
	c.body = c.body[:0]
	if !r.chunked {
		return c.readPart(max(0, r.length))
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("reading a chunk: %w", err)
		}
		digits, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte(";"))
		size, err := strconv.ParseUint(string(digits), 16, 31)
		if err != nil {
			return fmt.Errorf("reading a chunk: %w", err)
		}
		if err := c.readPart(int(size)); err != nil {
			return err
		}
		if _, err := c.in.Discard(2); err != nil { // CR LF; no server here has trailers
			return fmt.Errorf("reading a chunk: %w", err)
		}
		if size == 0 {
			return nil
		}
	}
}

// readPart appends so many bytes to the body.
func (c *httpCaller) readPart(size int) error {
	begin := len(c.body)
	if cap(c.body)-begin < size {
		c.body = append(make([]byte, 0, max(2*cap(c.body), begin+size)), c.body...)
	}
	c.body = c.body[:begin+size]
	if _, err := io.ReadFull(c.in, c.body[begin:]); err != nil {
		return fmt.Errorf("reading the body: %w", err)
	}
	return nil
}

// A reply is the head of an answer.
type reply struct {
	status  int
	length  int
	chunked bool
	events  bool
	session string
}

// readReply reads a head.
func readReply(in *bufio.Reader) (reply, error) {
	r := reply{length: -1}
	line, err := in.ReadSlice('\n')
	if err != nil {
		return r, fmt.Errorf("reading the status: %w", err)
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return r, fmt.Errorf("no answer of HTTP/1.1: %.60q", line)
	}
	r.status = number(line[9:12])
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return r, fmt.Errorf("reading a header: %w", err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return r, nil
		}
		if err := r.take(line); err != nil {
			return r, err
		}
	}
}

// take reads a header line.
func (r *reply) take(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return fmt.Errorf("no header: %.60q", line)
	}
	name, value := line[:colon], bytes.TrimSpace(line[colon+1:])
	switch {
	case isName(name, "content-length"):
		if r.length = number(value); r.length < 0 {
			return errors.New("a Content-Length that is no number")
		}
	case isName(name, "transfer-encoding"):
		r.chunked = true
	case isName(name, "content-type"):
		r.events = bytes.HasPrefix(value, []byte("text/event-stream"))
	case isName(name, "mcp-session-id"):
		r.session = string(value)
	}
	return nil
}

// isName compares a header's name with one in lower case.
func isName(name []byte, lower string) bool {
	return len(name) == len(lower) && bytes.EqualFold(name, []byte(lower))
}

// findEvent returns the data of the event that answers a request; nil when
// there is none.
func findEvent(stream []byte, id int) []byte {
	for len(stream) > 0 {
		line, rest, _ := bytes.Cut(stream, []byte("\n"))
		if data, found := bytes.CutPrefix(line, []byte("data:")); found && answerID(data) == id {
			return bytes.TrimSpace(data)
		}
		stream = rest
	}
	return nil
}
