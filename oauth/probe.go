// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/garraia/garra/internal/version"
)

// The headers of a session (MCP specification, "Transports").
const (
	headerSession  = "Mcp-Session-Id"
	headerRevision = "Mcp-Protocol-Version"
)

// A question is a message that a client sends.
type question struct {
	body   string
	header http.Header // that goes with it; may be nil
}

// greeting is what a client says first, in the era with a handshake. Some servers
// let anybody in, and want a token only of who asks for something.
func greeting() []question {
	return []question{
		{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion +
			`","capabilities":{},"clientInfo":{"name":"garra","version":"` + version.String() + `"}}}`},
		{body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
		{body: `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`},
	}
}

// inquiry is the same in the era without one (MCP 2026-07-28, "Transports").
func inquiry() (list []question) {
	const meta = `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + statelessVersion +
		`","io.modelcontextprotocol/clientCapabilities":{}}}`
	for i, method := range []string{"server/discover", "tools/list"} {
		list = append(list, question{
			body:   fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, i+1, method, meta),
			header: http.Header{headerRevision: {statelessVersion}, "Mcp-Method": {method}},
		})
	}
	return list
}

// probe asks the server for its challenge, and returns none when it makes none;
// answered is set when it did all that it was asked without a token. A server that
// knows no handshake is asked without one.
func (a *Account) probe(ctx Context) (c Challenge, answered bool, err error) {
	res, err := a.ask(ctx, greeting())
	if err == nil && isUnknown(res) {
		res, err = a.ask(ctx, inquiry())
	}
	if err != nil {
		return c, false, err
	}
	if isSuccess(res) {
		return c, true, nil
	}
	c, _ = ReadChallenge(res.Header)
	return c, false, nil
}

func isSuccess(res *http.Response) bool { return res.StatusCode >= 200 && res.StatusCode < 300 }

// isUnknown reports whether a server answers so to what it doesn't know.
func isUnknown(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		_, challenged := ReadChallenge(res.Header)
		return !challenged
	}
	return false
}

// ask asks one question after the other, until the server refuses one, and returns
// the last answer.
func (a *Account) ask(ctx Context, questions []question) (last *http.Response, err error) {
	session := make(http.Header)
	for _, q := range questions {
		header := session.Clone()
		maps.Copy(header, q.header)
		last, err = a.put(ctx, http.MethodPost, q.body, header)
		if err != nil || !isSuccess(last) {
			return last, err
		}
		if id := last.Header.Get(headerSession); id != "" && len(session) == 0 {
			session.Set(headerSession, id)
			defer a.leave(ctx, session)
		}
		session.Set(headerRevision, protocolVersion)
	}
	return last, nil
}

// put makes a request without a token. Of the answer only its head is kept.
func (a *Account) put(ctx Context, method, body string, session http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.URL.String(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, headers := range []http.Header{a.Headers, session} {
		for name, values := range headers {
			req.Header[name] = slices.Clone(values)
		}
	}
	req.Host = req.Header.Get("Host") // empty is that of the url
	req.Header.Set("User-Agent", userAgent())
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := a.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", bare(err))
	}
	if res.ContentLength >= 0 {
		_, _ = io.CopyN(io.Discard, res.Body, maxBody) // what there is of it; a stream is not waited for
	}
	return res, res.Body.Close()
}

// leave ends the session that the questions began.
func (a *Account) leave(ctx Context, session http.Header) {
	_, _ = a.put(ctx, http.MethodDelete, "", session) // a server need not take it
}
