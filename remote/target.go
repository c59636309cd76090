// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/oauth"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

// A target is the url and the headers of an entry. References in them are
// resolved for each request, so that a value is kept nowhere. It is safe for
// concurrent use.
type target struct {
	entry   *mcpconfig.Server
	options *Options
	names   []string                 // of the headers, sorted
	last    atomic.Pointer[address]  // that was resolved; nil before the first
	tokens  atomic.Pointer[[]string] // that were sent last
	veil    *veil                    // over what is sent; nil for a target that sends nothing
	oauth   *http.Client             // asks authorization servers; made with the first account
	making  sync.Once                // of oauth
}

// An address is a target with its references resolved, for one request.
type address struct {
	url     *url.URL
	headers http.Header
	secrets []string       // what no message may show
	redact  *redact.Set    // nil for none
	keys    []string       // of the secrets that were resolved, sorted
	account *oauth.Account // nil when the entry has an Authorization of its own, or no logins are kept
	token   string         // of the account, among the headers; empty for none
}

// Check returns what keeps an entry's references from being resolved, such as
// [envbuild.Errors], or nil. It sends nothing.
func Check(ctx Context, entry *mcpconfig.Server, host envbuild.Host, secrets envbuild.Secrets) error {
	if _, failure := newTarget(entry, &Options{Host: host, Secrets: secrets}, nil).resolve(ctx); failure != nil {
		return failure
	}
	return nil
}

// newTarget returns the target of an entry; veil is nil where nothing is sent.
func newTarget(entry *mcpconfig.Server, options *Options, veil *veil) *target {
	t := &target{entry: entry, options: options, veil: veil}
	for name := range entry.Headers {
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	return t
}

// resolve returns where a request goes and what it carries.
func (t *target) resolve(ctx Context) (*address, *source.Failure) {
	var problems envbuild.Errors
	secrets := make(map[string]string)
	expand := func(field, text string) string {
		value, err := t.expand(ctx, text, secrets)
		problems = append(problems, t.located(field, err)...)
		return value
	}
	link := expand("url", t.entry.URL)
	a := &address{headers: make(http.Header, len(t.names)+5), redact: t.options.Redact}
	for _, name := range t.names {
		value := expand("headers."+name, t.entry.Headers[name])
		value = strings.TrimSpace(value) // a file's last line end is not meant
		if strings.ContainsFunc(value, unicode.IsControl) {
			problems = append(problems, t.located("headers."+name, controlError())...)
		}
		a.headers.Set(name, value)
		a.hide(strings.Fields(value)...)
	}
	account := t.account(expand)
	if len(problems) > 0 {
		return nil, lifecycle.EntryFailure(t.entry.Name, problems)
	}
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &source.Failure{
			Code: source.ServerFailed, Server: t.entry.Name,
			Message: "url (" + t.entry.Position("url").String() + ") is not an http or https address",
			Fix:     "write an address such as https://example.com/mcp",
		}
	}
	u.Fragment = ""
	a.url = u
	a.hideURL()
	a.hide(account.ClientSecret)
	a.keys = slices.Sorted(maps.Keys(secrets))
	if t.veil != nil {
		t.veil.cover(a.veiled(secrets, account.ClientSecret)...)
	}
	if t.options.Logins != nil && a.headers.Get("Authorization") == "" {
		account.URL, account.Headers, account.HTTP = a.url, a.headers, t.oauthClient(a.url)
		a.account = account
	}
	t.last.Store(a)
	return a, nil
}

// scrub takes what must not be shown out of a text of the server.
func (t *target) scrub(text string) string {
	if a := t.last.Load(); a != nil {
		text = a.scrub(text)
	}
	if tokens := t.tokens.Load(); tokens != nil {
		text = (&address{secrets: *tokens}).scrub(text)
	}
	return text
}

// controlError is the problem of a value that would be more than one header.
func controlError() error {
	return &envbuild.Error{
		Kind: envbuild.ErrInvalid, Message: "the value has a control character in it", Fix: "take it out",
	}
}

// expand resolves the references in one text, and notes the values of secrets in it by
// their keys.
func (t *target) expand(ctx Context, text string, values map[string]string) (string, error) {
	secrets := t.options.Secrets
	if secrets != nil {
		secrets = noting{secrets, values}
	}
	return envbuild.Expand(ctx, t.entry.Name, text, t.options.Host.Lookup, secrets)
}

// located says of each problem where it is.
func (t *target) located(field string, err error) envbuild.Errors {
	problems, several := errors.AsType[envbuild.Errors](err)
	if one, ok := errors.AsType[*envbuild.Error](err); ok && !several {
		problems = envbuild.Errors{one}
	}
	for _, p := range problems {
		p.Field, p.Where = field, t.entry.Position(field).String()
	}
	return problems
}

// minSecret is the length of the shortest value that is kept out of messages:
// shorter ones stand in too many words.
const minSecret = 6

func (a *address) hide(values ...string) {
	for _, v := range values {
		if len(v) >= minSecret {
			a.secrets = append(a.secrets, v)
		}
	}
}

// longSegment is the length of a part of a path that may be a key.
const longSegment = 20

// hideURL hides what of an address may be secret: who asks, the query, and long
// parts of the path.
func (a *address) hideURL() {
	a.hide(a.url.User.Username())
	for segment := range strings.SplitSeq(a.url.EscapedPath(), "/") {
		if len(segment) >= longSegment {
			a.hide(segment)
		}
	}
	if password, ok := a.url.User.Password(); ok {
		a.hide(password)
	}
	for _, values := range a.url.Query() {
		a.hide(values...)
	}
	a.hide(a.url.RawQuery)
}

// scrub takes what must not be shown out of a text: what may be secret of this address,
// and the secrets of all servers in whatever form.
func (a *address) scrub(text string) string {
	if a.redact != nil {
		text = a.redact.String(text)
	}
	for _, secret := range a.secrets {
		text = strings.ReplaceAll(text, secret, "[hidden]")
	}
	return text
}

// exposed reports whether others on the way can read the headers of the entry.
func (a *address) exposed() bool {
	ip, _ := netip.ParseAddr(a.url.Hostname()) // the zero address for a name
	here := ip.IsLoopback() || strings.EqualFold(a.url.Hostname(), "localhost")
	return a.url.Scheme == "http" && !here && (len(a.headers) > 0 || a.url.User != nil)
}

// host is the address as a message may show it.
func host(u *url.URL) string { return u.Scheme + "://" + u.Host }

// sameOrigin reports whether two addresses have one origin (RFC 6454, section 5).
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
