// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/oauth"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

const (
	loginTime  = 30 * time.Second // for one request to an authorization server
	offersTime = 10 * time.Second // to find out whether there is one
	keptTokens = 4                // that are kept out of messages, the last ones
)

// Account returns who garra is at the server of an entry, for a person who logs
// in or out. It fails with a *source.Failure when a reference can't be resolved,
// and when the entry leaves no room for a login.
func Account(ctx Context, entry *mcpconfig.Server, options Options) (*oauth.Account, error) {
	if entry.Transport == mcpconfig.Stdio {
		f := source.Fail(source.ServerFailed, entry.Name, "it is no server at a url, so there is nothing to log in to")
		f.Fix = "give it what it needs in env"
		return nil, f
	}
	options.limit()
	to, failure := newTarget(entry, &options, nil).resolve(ctx)
	if failure != nil {
		return nil, failure
	}
	if to.account == nil {
		f := source.Fail(source.ServerFailed, entry.Name,
			"its headers (%s) set an Authorization, which a login would not replace", entry.Position("headers"))
		f.Fix = "take it out, and log in again"
		return nil, f
	}
	return to.account, nil
}

// limit gives options without limits the standard ones.
func (o *Options) limit() {
	if o.limits == nil {
		standard := standardLimits()
		o.limits = &standard
	}
}

// An expander resolves the references in one text of an entry.
type expander func(field, text string) string

// account is what the entry says of who garra is.
func (t *target) account(expand expander) *oauth.Account {
	of := &t.entry.OAuth
	text := func(field, text string) string {
		if text == "" {
			return ""
		}
		return strings.TrimSpace(expand("oauth."+field, text))
	}
	return &oauth.Account{
		Name: t.entry.Name, Store: t.options.Logins, Scopes: of.Scopes, CallbackPort: of.CallbackPort,
		ClientID: text("clientId", of.ClientID), ClientSecret: text("clientSecret", of.ClientSecret),
		MetadataURL: text("clientMetadataUrl", of.ClientMetadataURL), Issuer: text("issuer", of.Issuer),
	}
}

// oauthClient returns what asks the authorization server of a server at a url.
// The addresses that it asks are named by others. It is seldom used, so that it
// keeps no connections.
func (t *target) oauthClient(home *url.URL) *http.Client {
	t.making.Do(func() {
		g := newGuard(t.options, t.entry.AllowPrivateAddresses)
		g.home = home.Hostname()
		t.oauth = guarded(t.options, g)
		t.oauth.Timeout = loginTime
		if transport, ok := t.oauth.Transport.(*http.Transport); ok {
			transport.DisableKeepAlives = true
		}
	})
	return t.oauth
}

// bearing returns the address with a token.
func (t *target) bearing(a *address, token string) *address {
	next := *a
	next.token, next.headers = token, maps.Clone(a.headers)
	next.headers.Set("Authorization", "Bearer "+token)
	next.secrets = append(slices.Clip(a.secrets), token)
	if t.veil != nil {
		t.veil.cover(redact.Value{Name: "login", Text: token})
	}
	for {
		old := t.tokens.Load()
		if old != nil && slices.Contains(*old, token) {
			return &next
		}
		kept := []string{token}
		if old != nil {
			kept = append(kept, (*old)[:min(len(*old), keptTokens-1)]...)
		}
		if t.tokens.CompareAndSwap(old, &kept) {
			return &next
		}
	}
}

// authorized adds the token of the last login to an address, if there is one.
func (c *caller) authorized(ctx Context, to *address) (*address, *mishap) {
	if to.account == nil {
		return to, nil
	}
	token, err := to.account.Token(ctx)
	switch {
	case err != nil:
		return nil, c.tokenless(ctx, to, err)
	case token == "":
		return to, nil
	}
	return c.target.bearing(to, token), nil
}

// renewed replaces a token that the server refused.
func (c *caller) renewed(ctx Context, to *address) (*address, *mishap) {
	token, err := to.account.Renew(ctx, to.token)
	if err != nil {
		return nil, c.tokenless(ctx, to, err)
	}
	return c.target.bearing(to, token), nil
}

// tokenless is the mishap of a request for which there is no token.
func (c *caller) tokenless(ctx Context, to *address, err error) *mishap {
	m := c.mishap(to.scrub(err.Error()), "")
	m.unsent, m.failure.Cause = true, err
	switch {
	case ctx.Err() != nil:
		m.failure = source.Cancelled(ctx, c.target.entry.Name)
	case errors.Is(err, oauth.ErrLogin):
		m.ends, m.lasting = true, true
		c.wants(m, to)
	default:
		m.ends, m.failure.Code = true, source.ServerCrashed
	}
	return m
}

// wants says that somebody has to log in.
func (c *caller) wants(m *mishap, to *address) {
	m.failure.Fix = "run `garra mcp login " + c.target.entry.Name + "`"
	token := to.account.Stored()
	m.login = &token
}

// login sees in an answer that refuses that a login would help.
func (c *caller) login(ctx Context, res *response, m *mishap) {
	to := res.from
	if to.account == nil { // the entry's headers set an Authorization
		if entry := c.target.entry; m.status == http.StatusUnauthorized {
			m.failure.Fix = fmt.Sprintf("the Authorization in headers (%s) is not what it wants: look whether it "+
				"is right, or take it out and try `garra mcp login %s`", entry.Position("headers"), entry.Name)
		}
		return
	}
	challenge, _ := oauth.ReadChallenge(res.Header)
	switch m.status {
	case http.StatusUnauthorized:
		ctx, cancel := context.WithTimeout(ctx, offersTime)
		defer cancel()
		if to.token == "" && !to.account.Offers(ctx, challenge) {
			m.failure.Fix = "set the Authorization that it wants in headers; it names no place to log in at"
			return
		}
		m.failure.Message += "; it wants a login"
		if to.token != "" {
			m.failure.Message += ", since it takes the token of the last one no longer"
		}
		c.wants(m, to)
	case http.StatusForbidden:
		if challenge.Error == "insufficient_scope" {
			c.insufficient(m, to, challenge.Scopes)
		}
	}
}

// plainScope is a scope that can be shown as part of a command: the server
// chooses it, and a person may copy it into a shell.
var plainScope = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/-]*$`)

// insufficient says which scopes the token lacks (MCP specification, "Scope
// Challenge Handling").
func (c *caller) insufficient(m *mishap, to *address, scopes []string) {
	m.answer = nil // it can't say what helps here
	m.failure.Message += "; the token of the last login does not reach so far"
	c.wants(m, to)
	if len(scopes) == 0 {
		return
	}
	all := strings.Join(scopes, " ")
	m.failure.Message += fmt.Sprintf(", that takes %.*q", maxQuote, all)
	command := "garra mcp login " + c.target.entry.Name
	for _, scope := range scopes {
		if !plainScope.MatchString(scope) || len(all) > maxQuote {
			m.failure.Fix = "log in again with these: `" + command + " --scope SCOPE`, for each"
			return
		}
		command += " --scope " + scope
	}
	m.failure.Fix = "run `" + command + "`"
}
