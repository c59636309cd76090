// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/authserver"
)

func mustPort(t *testing.T, u *url.URL) int {
	t.Helper()
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// loggedIn is an account after its login.
func loggedIn(t *testing.T, s *authserver.Server) *Account {
	t.Helper()
	a := account(t, serve(t, s).URL+authserver.MCP)
	if _, _, err := login(t, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// change rewrites the grant of an account.
func change(t *testing.T, a *Account, do func(*grant)) {
	t.Helper()
	g, err := a.Store.read(a.Name)
	if err != nil {
		t.Fatal(err)
	}
	next := *g
	do(&next)
	if err := a.Store.write(&next); err != nil {
		t.Fatal(err)
	}
}

// other is the account of another process.
func other(a *Account) *Account {
	b := *a
	b.Store = NewStore(a.Store.dir)
	return &b
}

// However many want another token, in how many processes, one refreshes.
func TestOneRefresh(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	a := loggedIn(t, s)
	old := token(t, a)
	change(t, a, func(g *grant) { g.ExpiresAt = time.Now().Add(-time.Second) })
	var mu sync.Mutex
	var all sync.WaitGroup
	found := make(map[string]bool)
	for _, each := range []*Account{a, other(a), other(a)} {
		for i := range 8 {
			all.Go(func() { // ends with its token; the test waits for it
				text, err := each.Token(t.Context())
				if i%2 == 0 {
					text, err = each.Renew(t.Context(), old)
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				found[text] = true
			})
		}
	}
	all.Wait()
	if s.Count("refresh_token") != 1 || len(found) != 1 || found[old] || len(s.Problems()) > 0 {
		t.Errorf("refreshed %d times: %v, %v", s.Count("refresh_token"), found, s.Problems())
	}
}

// A token that ends soon is used on, and renewed meanwhile.
func TestRenewAhead(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	a := loggedIn(t, s)
	old := token(t, a)
	change(t, a, func(g *grant) {
		g.ObtainedAt, g.ExpiresAt = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second)
	})
	if text := token(t, a); text != old {
		t.Error("the token was not used on")
	}
	a.Store.Close(t.Context()) // waits for the refresh
	if text := token(t, a); text == old || s.Count("refresh_token") != 1 {
		t.Errorf("refreshed %d times", s.Count("refresh_token"))
	}
	if _, err := a.Renew(t.Context(), token(t, a)); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// A refresh that nobody waits for any more is carried to its end.
func TestRefreshIsNotGivenUp(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	a := loggedIn(t, s)
	old := token(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Renew(ctx, old); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a.Store.Close(t.Context())
	if token(t, other(a)) == old || s.Count("refresh_token") != 1 {
		t.Errorf("refreshed %d times", s.Count("refresh_token"))
	}
}

// A refresh token that is revoked needs a person, and is tried once.
func TestRevoked(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	a := loggedIn(t, s)
	s.Expire(true)
	old := token(t, a)
	for range 3 {
		_, err := a.Renew(t.Context(), old)
		if !errors.Is(err, ErrLogin) || strings.Contains(err.Error(), "refresh-") {
			t.Error(err)
		}
	}
	if s.Count("refresh_token") != 1 {
		t.Errorf("refreshed %d times", s.Count("refresh_token"))
	}
	change(t, a, func(g *grant) { g.ExpiresAt = time.Now().Add(-time.Second) })
	if _, err := a.Token(t.Context()); !errors.Is(err, ErrLogin) {
		t.Error(err)
	}
	if l, err := a.Current(); l != nil || err != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

// An authorization server that is gone for a while costs no login.
func TestRefreshLater(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	a := loggedIn(t, s)
	old := token(t, a)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer down.Close()
	endpoint := ""
	change(t, a, func(g *grant) { endpoint, g.TokenEndpoint = g.TokenEndpoint, down.URL })
	if _, err := a.Renew(t.Context(), old); err == nil || errors.Is(err, ErrLogin) {
		t.Error(err)
	}
	change(t, a, func(g *grant) { g.TokenEndpoint = endpoint })
	if text, err := a.Renew(t.Context(), old); err != nil || text == old {
		t.Errorf("%q, %v", text, err)
	}
}

// A grant is for one server at one url, and for one client.
func TestOwner(t *testing.T) {
	t.Parallel()
	a := loggedIn(t, &authserver.Server{})
	for name, edit := range map[string]func(*Account){
		"another url":    func(b *Account) { b.URL = &url.URL{Scheme: "https", Host: "example.com", Path: "/mcp"} },
		"another path":   func(b *Account) { b.URL = b.URL.JoinPath("x") },
		"another issuer": func(b *Account) { b.Issuer = "https://example.com" },
		"another client": func(b *Account) { b.ClientID = "mine" },
		"another name":   func(b *Account) { b.Name = "S" },
	} {
		b := *a
		edit(&b)
		if text, err := b.Token(t.Context()); text != "" || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if l, err := b.Current(); l != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	for client, owned := range map[string]bool{clientPreset: false, clientDocument: false, clientDynamic: true} {
		change(t, a, func(g *grant) { g.Client = client })
		if text, err := a.Token(t.Context()); (text != "") != owned || err != nil {
			t.Errorf("%s: %q, %v", client, text, err)
		}
	}
	if err := os.WriteFile(a.Store.path("s"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Token(t.Context()); !errors.Is(err, ErrLogin) {
		t.Error(err)
	}
}

// Without https there is no login, and nobody is asked for one.
func TestInsecure(t *testing.T) {
	t.Parallel()
	a := account(t, "http://192.0.2.1/mcp")
	if a.Offers(t.Context(), Challenge{Metadata: "https://example.com"}) {
		t.Error("a login is offered")
	}
	if _, _, err := login(t, a); err == nil || !strings.Contains(err.Error(), "not an https address") {
		t.Error(err)
	}
}

// A server may let anybody begin, and want a token only for what comes then; or
// never.
func TestProbe(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, ended := false, 0
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path != "/mcp":
			w.Header().Set("Content-Type", "text/html") // as many answer to everything
		case r.Method == http.MethodDelete:
			ended++
		case strings.Contains(string(text), "initialize\""):
			w.Header().Set("Mcp-Session-Id", "one")
		case strings.Contains(string(text), "tools/list") && r.Header.Get("Mcp-Session-Id") == "one" && !open:
			w.Header().Set("WWW-Authenticate", `Bearer scope="late"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer w.Close()
	a := account(t, w.URL+"/mcp")
	c, answered, err := a.probe(t.Context())
	if err != nil || answered || strings.Join(c.Scopes, " ") != "late" || ended != 1 {
		t.Errorf("%+v, %v, %v; the session ended %d times", c, answered, err, ended)
	}
	if a.Offers(t.Context(), c) {
		t.Error("pages are metadata")
	}
	mu.Lock()
	open = true
	mu.Unlock()
	if _, _, err := login(t, a); err == nil || !strings.Contains(err.Error(), "answers without a token") {
		t.Error(err)
	}
}

// A server of 2025-03-26 is its own authorization server.
func TestOwnIssuer(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	s.Inner = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	w := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "protected-resource") {
			http.NotFound(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer w.Close()
	a := account(t, w.URL+authserver.MCP)
	if !a.Offers(t.Context(), Challenge{}) {
		t.Error("no login is offered")
	}
	realm, err := a.discover(t.Context(), Challenge{})
	if err != nil || realm.resource != w.URL+authserver.MCP || realm.issuer.Issuer != w.URL {
		t.Errorf("%+v, %v", realm, err)
	}
}

// Whatever stands in a header, it is read or not.
func FuzzReadChallenge(f *testing.F) {
	for _, text := range []string{
		"Bearer", `Bearer realm="a\"b", scope="c d"`, `Basic realm=x, Bearer resource_metadata="https://x/"`, `",=`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := ReadChallenge(http.Header{"Www-Authenticate": {text, text}})
		if !ok && (c.Metadata != "" || len(c.Scopes) > 0) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}

// Where the metadata of an issuer may be.
func TestIssuerPlaces(t *testing.T) {
	t.Parallel()
	for issuer, want := range map[string]string{
		"https://a.example": "https://a.example/.well-known/oauth-authorization-server " +
			"https://a.example/.well-known/openid-configuration",
		"https://a.example/t/": "https://a.example/.well-known/oauth-authorization-server/t " +
			"https://a.example/.well-known/openid-configuration/t " +
			"https://a.example/t/.well-known/openid-configuration",
	} {
		u, err := url.Parse(issuer)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(issuerPlaces(u), " "); got != want {
			t.Errorf("%s: %s", issuer, got)
		}
	}
}

// What a challenge says.
func TestReadChallenge(t *testing.T) {
	t.Parallel()
	h := http.Header{"Www-Authenticate": {`Basic realm="x", Bearer scope="a b", resource_metadata="https://x/y"`}}
	if c, ok := ReadChallenge(h); !ok || c.Metadata != "https://x/y" || strings.Join(c.Scopes, ",") != "a,b" {
		t.Errorf("%+v, %v", c, ok)
	}
	for _, text := range []string{"", "Basic", "\"", "Bearer a=\"", "Negotiate abc="} {
		if c, ok := ReadChallenge(http.Header{"Www-Authenticate": {text}}); ok {
			t.Errorf("%q: %+v", text, c)
		}
	}
}
