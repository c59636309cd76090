// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

var (
	// ErrNoOAuth is of a server that has no metadata.
	ErrNoOAuth = errors.New("the server says nothing about OAuth")
	// errNoIssuer is of an authorization server that has none.
	errNoIssuer = errors.New("the authorization server has no metadata")
)

// A realm is what metadata says of a server and its authorization server.
type realm struct {
	resource string   // the name of the server in tokens
	scopes   []string // that the server knows
	issuer   *oauthex.AuthServerMeta
}

// Offers reports whether a server that wants a token has an authorization server
// for it, be it one that a login would fail at. One without https has none: a
// token would travel unencrypted.
func (a *Account) Offers(ctx Context, c Challenge) bool {
	if _, err := secure("the server", origin(a.URL)); err != nil {
		return false
	}
	if c.Metadata != "" {
		return true
	}
	_, err := a.discover(ctx, c)
	return ctx.Err() == nil && !errors.Is(err, ErrNoOAuth)
}

// discover finds the authorization server of a server.
func (a *Account) discover(ctx Context, c Challenge) (*realm, error) {
	protected, err := a.protected(ctx, c)
	if errors.Is(err, ErrNoOAuth) {
		// Revision 2025-03-26 had the server be its own authorization server.
		root := url.URL{Scheme: a.URL.Scheme, Host: a.URL.Host}
		issuer, absent := a.issuer(ctx, root.String())
		if errors.Is(absent, errNoIssuer) {
			return nil, err
		}
		if absent != nil {
			return nil, absent
		}
		return &realm{resource: a.resource(), issuer: issuer}, nil
	}
	if err != nil {
		return nil, err
	}
	issuer, err := a.issuer(ctx, protected.AuthorizationServers[0])
	if err != nil {
		return nil, err
	}
	return &realm{resource: protected.Resource, scopes: protected.ScopesSupported, issuer: issuer}, nil
}

// A place is where metadata may be, and of what.
type place struct{ address, of string }

// protected gets the metadata of the server: from where the challenge says, or
// from one of the well-known places (RFC 9728, section 3.1).
func (a *Account) protected(ctx Context, c Challenge) (*oauthex.ProtectedResourceMetadata, error) {
	resource := a.resource()
	if c.Metadata != "" {
		return a.protectedAt(ctx, place{c.Metadata, resource})
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := origin(a.URL)
	places := []place{{root + wellKnown, root}}
	if path := strings.TrimSuffix(a.URL.EscapedPath(), "/"); path != "" {
		places = slices.Insert(places, 0, place{root + wellKnown + path, resource})
	}
	for _, p := range places {
		m, err := a.protectedAt(ctx, p)
		if isAbsent(err) {
			continue
		}
		return m, err
	}
	return nil, ErrNoOAuth
}

// protectedAt gets metadata of a server, which has to be that of this one: else
// another server could have tokens made out for this one, or have a person log
// in elsewhere (RFC 9728, section 3.3).
func (a *Account) protectedAt(ctx Context, p place) (*oauthex.ProtectedResourceMetadata, error) {
	m := new(oauthex.ProtectedResourceMetadata)
	if err := a.fetch(ctx, "the server's metadata", p.address, m); err != nil {
		return nil, err
	}
	if !oauthex.MatchesResource([]string{a.resource(), p.of}, m.Resource) {
		return nil, fmt.Errorf("the server's metadata is that of %.200q, not of %.200q", m.Resource, a.resource())
	}
	if len(m.AuthorizationServers) == 0 {
		return nil, errors.New("the server's metadata names no authorization server")
	}
	return m, nil
}

// issuer gets the metadata of an authorization server (RFC 8414, section 3;
// OpenID Connect Discovery 1.0, section 4; MCP specification, "Authorization",
// for their order).
func (a *Account) issuer(ctx Context, name string) (*oauthex.AuthServerMeta, error) {
	u, err := secure("the authorization server", name)
	if err != nil {
		return nil, err
	}
	failure := fmt.Errorf("%w: %.200q", errNoIssuer, name)
	for _, address := range issuerPlaces(u) {
		m := new(oauthex.AuthServerMeta)
		err := a.fetch(ctx, "the authorization server's metadata", address, m)
		if isAbsent(err) {
			continue
		}
		if err == nil {
			err = checkIssuer(name, m)
		}
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	return nil, failure
}

// issuerPlaces are the addresses at which an issuer's metadata may be.
func issuerPlaces(u *url.URL) []string {
	const oauth, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	root, path := origin(u), strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{root + oauth + path, root + openID + path}
	if path != "" {
		places = append(places, root+path+openID)
	}
	return places
}

// sameIssuer compares the names of issuers, as they are but for a slash at the
// end, which many leave out at one of two places.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// trusts refuses an authorization server that isn't the one to log in at. The
// secret of a client goes only to the one that the client is registered at, which
// without a word in the entry is that of the first login.
func (a *Account) trusts(issuer string) error {
	last, err := a.Store.read(a.Name)
	switch {
	case a.Issuer != "" && !sameIssuer(a.Issuer, issuer):
		return fmt.Errorf("the server names the authorization server %.200q, "+
			"and oauth.issuer of the entry another", issuer)
	case a.Issuer == "" && a.ClientSecret != "" && err == nil && a.owns(last) && !sameIssuer(last.Issuer, issuer):
		return fmt.Errorf("the server names the authorization server %.200q, and named %.200q at the last login; "+
			"if that is meant, log out first", issuer, last.Issuer)
	}
	return nil
}

// checkIssuer refuses metadata of another issuer, and an authorization server
// that garra can't be safe with.
func checkIssuer(name string, m *oauthex.AuthServerMeta) error {
	if !sameIssuer(m.Issuer, name) {
		return fmt.Errorf("the authorization server's metadata is that of %.200q, not of %.200q", m.Issuer, name)
	}
	if !slices.Contains(m.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %.200q does not say that it knows PKCE with S256, "+
			"without which MCP allows no login", name)
	}
	for _, endpoint := range []struct {
		what, address string
		optional      bool
	}{
		{"the authorization endpoint", m.AuthorizationEndpoint, false},
		{"the token endpoint", m.TokenEndpoint, false},
		{"the registration endpoint", m.RegistrationEndpoint, true},
		{"the revocation endpoint", m.RevocationEndpoint, true},
	} {
		if endpoint.optional && endpoint.address == "" {
			continue
		}
		if _, err := secure(endpoint.what, endpoint.address); err != nil {
			return err
		}
	}
	return nil
}
