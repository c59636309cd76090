// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/garraia/garra/internal/version"
)

const (
	maxBody = 1 << 20 // bytes of an answer
	maxSaid = 200     // bytes of what others say, in a message
)

// isLoopback reports whether a host of a url is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

// A statusError is an answer that is no success.
type statusError struct {
	status int
	from   string // the origin
}

// Error implements error.
func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", e.from, e.status, http.StatusText(e.status)))
}

// A kindError is an answer that is no JSON, such as the page that many servers
// have for each address that they don't know.
type kindError struct{ what, kind string }

// Error implements error.
func (e *kindError) Error() string { return fmt.Sprintf("%s is no JSON but %.100q", e.what, e.kind) }

// isAbsent reports whether an error says that there is nothing at an address.
func isAbsent(err error) bool {
	e, refused := errors.AsType[*statusError](err)
	_, other := errors.AsType[*kindError](err)
	return refused && e.status >= 300 && e.status < 500 || other
}

// fetch gets a JSON document. What oauthex has for this hides causes, which
// garra tells people, and refuses addresses that an entry may have allowed.
func (a *Account) fetch(ctx Context, what, address string, into any) error {
	u, err := secure(what, address)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent())
	req.Header.Set("Mcp-Protocol-Version", protocolVersion)
	res, err := a.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("asking %s: %w", origin(u), bare(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &statusError{res.StatusCode, origin(u)}
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		return &kindError{what, kind}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", what, err)
	case len(body) > maxBody:
		return fmt.Errorf("%s is larger than %d bytes", what, maxBody)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s is not as it should be: %s", what, shape(err))
	}
	return nil
}

// protocolVersion is the revision of MCP whose authorization this is; servers
// may look at it when they are asked for their metadata.
const (
	protocolVersion  = "2025-11-25"
	statelessVersion = "2026-07-28" // of servers without a handshake
)

func userAgent() string { return "garra/" + version.String() }

// origin is an address as a message may show it.
func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// bare is an error of a request without the address, which may hold secrets.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// shape says what is wrong with JSON without repeating it.
func shape(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%.60q is %s", e.Field, e.Value)
	}
	return "no JSON object"
}

// said quotes what an authorization server says to people, without what is
// secret.
func said(text string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
	}
	return fmt.Sprintf("%.*q", maxSaid, text)
}
