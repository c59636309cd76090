// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	maxRedirects = 5
	maxRefusal   = 16 << 10 // bytes that are read of an answer that refuses
	idlePerHost  = 16       // connections to a server that are kept for later
	maxFixed     = 1 << 20  // bytes that are made room for because the server says that they come

	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// newClient returns the client of one run: what one server does, no other feels.
// The time of a request is that of its context alone.
// private allows addresses that are not on the internet.
func newClient(options *Options, private bool) *http.Client {
	return guarded(options, newGuard(options, private))
}

func guarded(options *Options, g *guard) *http.Client {
	transport := &http.Transport{
		Proxy:                  g.proxy,
		DialContext:            g.dial,
		TLSClientConfig:        options.tls.Clone(),
		TLSHandshakeTimeout:    options.limits.dial,
		MaxIdleConns:           idlePerHost,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: options.limits.headers,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &http.Client{Transport: transport, CheckRedirect: checkRedirect}
}

// checkRedirect follows redirects that stay within the origin and keep the
// method: any other would take headers, which hold secrets, somewhere else, or
// make a GET of a POST.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || !sameOrigin(first.URL, next.URL) || first.Method != next.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// A caller makes the requests of one run. It is safe for concurrent use.
type caller struct {
	target *target
	client *http.Client
	limits *limits
}

// A request is what a caller makes.
type request struct {
	method string
	to     *url.URL // nil for the url of the entry
	accept string
	header http.Header // garra's own; may be nil
	parcel *parcel     // nil for a request without a body
}

// A response is the answer to a request that was not refused.
type response struct {
	*http.Response
	from *address
	kind string // the media type of the body
}

// do makes a request. What is no success is a mishap, so that a response is one
// of 2xx. A token that the server refuses is renewed, once.
func (c *caller) do(ctx Context, r *request) (*response, *mishap) {
	to, failure := c.target.resolve(ctx)
	if failure != nil {
		return nil, &mishap{failure: failure, unsent: true, ends: true, lasting: true}
	}
	to, m := c.authorized(ctx, to)
	if m != nil {
		return nil, m
	}
	res, m := c.once(ctx, r, to)
	if m == nil || m.status != http.StatusUnauthorized || to.token == "" {
		return res, m
	}
	if to, m = c.renewed(ctx, to); m != nil {
		return nil, m
	}
	return c.once(ctx, r, to)
}

// once makes a request a single time.
func (c *caller) once(ctx Context, r *request, to *address) (*response, *mishap) {
	res, err := c.client.Do(c.build(ctx, r, to))
	if err != nil {
		return nil, c.broken(ctx, r, to, err)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // none is no type that is looked for
	answer := &response{Response: res, from: to, kind: kind}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return answer, nil
	}
	defer res.Body.Close()
	m := c.refused(answer, r)
	c.login(ctx, answer, m)
	return nil, m
}

// build makes the HTTP request: the headers of the entry first, then those that
// the protocol needs.
func (c *caller) build(ctx Context, r *request, to *address) *http.Request {
	req := (&http.Request{Method: r.method, URL: to.url, Header: to.headers}).WithContext(ctx)
	if r.to != nil {
		req.URL = r.to
	}
	req.Host = req.Header.Get("Host") // empty is that of the url
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "garra/"+version.String())
	}
	req.Header.Del("Accept-Encoding") // so that the transport decompresses what it asked for
	req.Header.Set("Accept", r.accept)
	maps.Copy(req.Header, r.header)
	if r.parcel != nil {
		req.Header.Set("Content-Type", typeJSON)
		req.Body, req.GetBody, req.ContentLength = r.parcel.content()
	}
	return req
}

// mishap is one that concerns a message alone.
func (c *caller) mishap(message, fix string) *mishap {
	return &mishap{failure: &source.Failure{
		Code: source.ServerFailed, Server: c.target.entry.Name, Message: message, Fix: fix,
	}}
}

func (m *mishap) with(change func(*mishap)) *mishap {
	change(m)
	return m
}

// broken is the mishap of a request that got no answer.
func (c *caller) broken(ctx Context, r *request, to *address, err error) *mishap {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address, which may hold secrets
	}
	unsent := r.parcel == nil || r.parcel.abandon()
	where, text := host(to.url), to.scrub(err.Error())
	m := c.mishap("", "")
	m.failure.Cause = err
	forbidden, isForbidden := errors.AsType[*forbiddenError](err)
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		m.unsent, m.failure = unsent, source.Cancelled(ctx, c.target.entry.Name)
	case isForbidden:
		m.unsent, m.ends, m.lasting = true, true, true
		m.failure.Message = "the connection was refused: " + forbidden.Error()
		m.failure.Fix = "if that is meant, write the address itself in url, or set allowPrivateAddresses"
	case isCertificate:
		m.unsent, m.ends, m.lasting = true, true, true
		m.failure.Message = fmt.Sprintf("the certificate of %s is not good: %s", where, text)
		m.failure.Fix = "mend it, or make its authority known to the system"
	case unsent:
		m.unsent, m.ends = true, true
		m.failure.Code = source.ServerCrashed
		m.failure.Message = fmt.Sprintf("%s can't be reached: %s", where, text)
		m.failure.Fix = "look whether it runs, and whether url is right"
	default:
		m.doubtful = true
		m.failure.Code = source.ServerCrashed
		m.failure.Message = fmt.Sprintf("%s gave no answer: %s", where, text)
	}
	return m
}

// refused is the mishap of a request whose answer is no success.
func (c *caller) refused(res *response, r *request) *mishap {
	m := c.mishap(fmt.Sprintf("%s answered %s", host(res.from.url), statusOf(res)), "")
	m.status = res.StatusCode
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what there is of it will do
	if said := res.said(body); said != "" {
		m.failure.Message += ": " + said
	}
	if r.answeredBy(body) && m.status != http.StatusUnauthorized && !isSessionLost(m.status, body) {
		m.answer = body
	}
	switch s := res.StatusCode; {
	case s >= 300 && s < 400:
		m.lasting = true
		m.failure.Message += ", a redirect" + c.elsewhere(res)
		m.failure.Fix = "if that place is to be trusted, write its address in url"
	case s == http.StatusUnauthorized:
		m.unsent, m.ends, m.lasting = true, true, true
		m.failure.Fix = "set the Authorization that it wants in headers, or log in again for a new token"
	case s == http.StatusForbidden:
		m.lasting = true
		m.failure.Fix = "set headers that have the right to this, or log in as somebody who has"
	case s == http.StatusNotFound && r.parcel != nil && r.parcel.isStateless(): // it is about what was asked
		m.failure.Fix = "it may not have what was asked for"
	case s == http.StatusNotFound:
		m.unsent, m.ends, m.lasting = true, true, true
		m.failure.Fix = "look whether url is right, with its path"
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests:
		m.failure.Fix = "wait, and ask for less at a time"
	case s < 500:
		m.lasting = true
		m.failure.Fix = "look whether url and type are right"
	}
	return m
}

// elsewhere says where a redirect leads.
func (c *caller) elsewhere(res *response) string {
	to, err := res.Location()
	if err != nil || to.Host == "" {
		return ""
	}
	return fmt.Sprintf(" to %.200q, which is not followed", host(to))
}

// statusOf is the status of an answer, in words that are not the server's.
func statusOf(res *response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode)))
}

// said is what an answer that refuses has to say for people: the message of a
// JSON-RPC error, or a line of plain text.
func (r *response) said(body []byte) string {
	text := ""
	if m, err := protocol.Parse(body); err == nil && m.Error != nil {
		text = protocol.ParseError(m.Error).Message
	} else if r.kind == "text/plain" {
		text, _, _ = strings.Cut(strings.TrimSpace(string(body)), "\n")
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%.*q", maxQuote, r.from.scrub(text))
}

// codeSessionLost is the error that servers made with the SDKs send with the 404
// for a session that they don't have.
const codeSessionLost = -32001

// isSessionLost tells a 404 for the session from one that answers a request.
func isSessionLost(status int, body []byte) bool {
	if status != http.StatusNotFound {
		return false
	}
	m, err := protocol.Parse(body)
	return err != nil || m.Error == nil || protocol.ParseError(m.Error).Code == codeSessionLost
}

// answeredBy reports whether a body is the error that answers the request.
func (r *request) answeredBy(body []byte) bool {
	if r.parcel == nil || r.parcel.call == nil {
		return false
	}
	m, err := protocol.Parse(body)
	if err != nil || !m.IsResponse() {
		return false
	}
	// Without a session, an error that can't name what it answers answers this.
	return m.ID == r.parcel.message.ID || m.ID.IsZero() && m.Error != nil && r.parcel.isStateless()
}

// whole reads a body to its end, up to the limit of a message; more says that
// there was more.
func (r *response) whole(limit int64) (body []byte, more bool, err error) {
	body = make([]byte, 0, min(max(r.ContentLength, 512), maxFixed)+1)
	src := io.LimitReader(r.Body, limit+1)
	for {
		n, err := src.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return body, true, nil
		case errors.Is(err, io.EOF):
			return body, false, nil
		case err != nil:
			return body, false, err
		case len(body) == cap(body):
			body = append(make([]byte, 0, r.roomFor(len(body), limit)), body...)
		}
	}
}

// roomFor is the room for a body of which so much has come: what the server said
// if so much has come that it is to be believed, else twice as much.
func (r *response) roomFor(n int, limit int64) int64 {
	if r.ContentLength >= int64(n) && r.ContentLength <= limit {
		return r.ContentLength + 1
	}
	return min(2*int64(n), limit+1)
}

// cancelAfter returns a context for a stream that outlives its beginning: it
// ends with life, and with begin until begun is called.
func cancelAfter(life, begin Context) (ctx Context, begun func(), cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(life)
	stop := context.AfterFunc(begin, cancel)
	return ctx, func() { stop() }, cancel
}
