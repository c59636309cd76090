// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"fmt"
	"io"
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

// questions are what a client says first. Some servers let anybody in, and want a
// token only of who asks for something.
func questions() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + protocolVersion +
			`","capabilities":{},"clientInfo":{"name":"garra","version":"` + version.String() + `"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}`,
	}
}

// probe asks the server for its challenge, and returns none when it makes none;
// answered is set when it did all that it was asked without a token.
func (a *Account) probe(ctx Context) (c Challenge, answered bool, err error) {
	session := make(http.Header)
	for i, question := range questions() {
		res, err := a.put(ctx, http.MethodPost, question, session)
		if err != nil {
			return c, false, err
		}
		if id := res.Header.Get(headerSession); i == 0 && id != "" {
			session.Set(headerSession, id)
			defer a.leave(ctx, session)
		}
		session.Set(headerRevision, protocolVersion)
		if res.StatusCode < 200 || res.StatusCode >= 300 {
			c, _ = ReadChallenge(res.Header)
			return c, false, nil
		}
	}
	return c, true, nil
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
