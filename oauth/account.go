// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Context is context.Context.
type Context = context.Context

// ErrLogin is wrapped by errors of a server that wants a token, when there is
// none that could be renewed: a person has to log in.
var ErrLogin = errors.New("nobody is logged in")

// An Account is one server, and who garra is there. All fields but Store and
// HTTP come from the entry, with its references resolved. It is safe for
// concurrent use, as long as nobody changes it.
type Account struct {
	Name string   // of the entry
	URL  *url.URL // of the server

	ClientID     string // of a client that is registered already; empty for none
	ClientSecret string
	MetadataURL  string   // of a client ID metadata document; empty for none
	Issuer       string   // the only authorization server to log in at; empty for any
	Scopes       []string // to ask for, in place of those that the server names
	CallbackPort int      // 0 for a free one

	Headers http.Header // that the server itself wants, besides a token

	Store *Store
	// HTTP makes all requests. It follows no redirect to another origin, and has a
	// timeout.
	HTTP *http.Client
}

// resource is the address of the server as its tokens name it (RFC 8707, section
// 2): without who asks, and without what only leads there.
func (a *Account) resource() string {
	u := *a.URL
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	return u.String()
}

// owns reports whether a grant is for this server and this client. The grant of
// a url that the entry doesn't have any more is nobody's.
func (a *Account) owns(g *grant) bool {
	if g == nil || g.Server != a.Name || g.URL != a.resource() {
		return false
	}
	switch {
	case a.Issuer != "" && !sameIssuer(a.Issuer, g.Issuer):
		return false
	case a.ClientID != "":
		return g.ClientID == a.ClientID
	case g.Client == clientPreset:
		return false // the entry had a client, and has none any more
	case g.Client == clientDocument:
		return g.ClientID == a.MetadataURL
	}
	return true
}

// An insecureError is why an address is not asked.
type insecureError struct{ what, address string }

// Error implements error.
func (e *insecureError) Error() string {
	return fmt.Sprintf("%s %.200q is not an https address", e.what, e.address)
}

// secure parses an address that is to be asked or shown: it has https, or is one
// of this machine (OAuth 2.1, section 1.5; RFC 8252, section 7.3).
func secure(what, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, &insecureError{what, address}
	}
	return u, nil
}
