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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/internal/authserver"
)

const patience = 30 * time.Second

// serve starts an authorization server with its MCP server.
func serve(t *testing.T, s *authserver.Server) *httptest.Server {
	t.Helper()
	if s.Inner == nil {
		s.Inner = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	}
	w := httptest.NewServer(s)
	t.Cleanup(w.Close)
	return w
}

// client is an HTTP client that does what garra's does, but for its guard.
func client() *http.Client {
	return &http.Client{
		Timeout:       patience,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// account is one at a server.
func account(t *testing.T, address string) *Account {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &Account{Name: "s", URL: u, Store: NewStore(filepath.Join(t.TempDir(), "oauth")), HTTP: client()}
}

// browse does what a browser does, and returns its last page.
func browse(t *testing.T, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Error(err)
		return ""
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// login logs in with a browser, and returns what that showed.
func login(t *testing.T, a *Account, scopes ...string) (*Login, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pages := make(chan string, 1)
	shown := false
	l, err := a.Login(ctx, &Ask{Scopes: scopes, Show: func(address string) {
		shown = true
		go func() { pages <- browse(t, address) }() // ends with the page, which is waited for
	}})
	if !shown {
		return l, "", err
	}
	return l, <-pages, err
}

// token is the token of an account that has one.
func token(t *testing.T, a *Account) string {
	t.Helper()
	text, err := a.Token(t.Context())
	if err != nil || text == "" {
		t.Fatalf("the token is %q, %v", text, err)
	}
	return text
}

// The kinds of clients: each logs in, refreshes and logs out.
func TestLogin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server     *authserver.Server
		change     func(*Account)
		registered int
	}{
		"registered by itself": {server: &authserver.Server{}, registered: 1},
		"of the entry": {
			server: &authserver.Server{NoDCR: true, Clients: map[string]string{"id:1": "s/2"}},
			change: func(a *Account) { a.ClientID, a.ClientSecret = "id:1", "s/2" },
		},
		"with a document": {
			server: &authserver.Server{Document: "https://example.com/garra.json"},
			change: func(a *Account) { a.MetadataURL = "https://example.com/garra.json" },
		},
		"with a document that is not wanted": {
			server: &authserver.Server{},
			change: func(a *Account) { a.MetadataURL = "https://example.com/garra.json" }, registered: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, c.server)
			a := account(t, w.URL+authserver.MCP+"?key=secret#x")
			if c.change != nil {
				c.change(a)
			}
			if text, err := a.Token(t.Context()); text != "" || err != nil {
				t.Errorf("before the login the token is %q, %v", text, err)
			}
			l, page, err := login(t, a)
			if err != nil || l.Issuer != w.URL || l.ExpiresAt == nil || !strings.Contains(page, "garra is logged in") {
				t.Fatalf("%+v, %v, page %s; %v", l, err, page, c.server.Problems())
			}
			first := token(t, a)
			second, err := a.Renew(t.Context(), first)
			if err != nil || second == first || token(t, a) != second {
				t.Errorf("renewed to %q: %v", second, err)
			}
			if again, err := a.Renew(t.Context(), first); err != nil || again != second {
				t.Errorf("the same again is %q, %v", again, err)
			}
			checkFiles(t, a.Store.dir)
			if ok, err := a.Logout(t.Context()); !ok || err != nil {
				t.Errorf("logout: %v, %v", ok, err)
			}
			if ok, err := a.Logout(t.Context()); ok || err != nil {
				t.Errorf("second logout: %v, %v", ok, err)
			}
			if l, err := a.Current(); l != nil || err != nil {
				t.Errorf("after the logout %+v, %v", l, err)
			}
			if c.server.Count("/register") != c.registered || c.server.Count("/revoke") != 1 ||
				c.server.Count("refresh_token") != 1 || len(c.server.Problems()) > 0 {
				t.Errorf("registered %d, revoked %d, refreshed %d: %v", c.server.Count("/register"),
					c.server.Count("/revoke"), c.server.Count("refresh_token"), c.server.Problems())
			}
		})
	}
}

// checkFiles makes sure that nobody else reads what is in the store.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Errorf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		info, err := name.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
}

// Which scopes are asked for.
func TestScopes(t *testing.T) {
	t.Parallel()
	known := func(kind string, m map[string]any) {
		m["scopes_supported"] = []string{"all"}
		if kind == "oauth-authorization-server" {
			m["scopes_supported"] = []string{"all", "offline_access"}
		}
	}
	for name, c := range map[string]struct {
		server *authserver.Server
		entry  []string
		more   []string
		want   string
	}{
		"none":              {server: &authserver.Server{}, want: ""},
		"of the challenge":  {server: &authserver.Server{Scopes: "read write"}, want: "read write"},
		"of the metadata":   {server: &authserver.Server{Metadata: known}, want: "all offline_access"},
		"of the entry":      {server: &authserver.Server{Scopes: "read"}, entry: []string{"x"}, want: "x"},
		"of the flag":       {server: &authserver.Server{Scopes: "read"}, more: []string{"y"}, want: "read y"},
		"challenge is more": {server: &authserver.Server{Scopes: "a", Metadata: known}, want: "a offline_access"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := account(t, serve(t, c.server).URL+authserver.MCP)
			a.Scopes = c.entry
			l, _, err := login(t, a, c.more...)
			if err != nil || strings.Join(l.Scopes, " ") != c.want {
				t.Fatalf("%+v, %v, want %q", l, err, c.want)
			}
			l, _, err = login(t, a, "more")
			if err != nil || !slices.Contains(l.Scopes, "more") || len(l.Scopes) != len(strings.Fields(c.want))+1 {
				t.Errorf("with more: %+v, %v", l, err)
			}
		})
	}
}

// set changes a value of one document.
func set(kind, name string, value any) *authserver.Server {
	return &authserver.Server{Metadata: func(k string, m map[string]any) {
		if k == kind {
			m[name] = value
		}
	}}
}

// answered changes what the browser brings back.
func answered(name string, values ...string) *authserver.Server {
	return &authserver.Server{Answer: func(v url.Values) {
		delete(v, name)
		if len(values) > 0 {
			v[name] = values
		}
	}}
}

// What a login must not end well with.
func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	const protected, issuer = "oauth-protected-resource", "oauth-authorization-server"
	for name, c := range map[string]struct {
		server *authserver.Server
		want   string
	}{
		"another resource":    {set(protected, "resource", "https://a.example/mcp"), `that of "https://a.example/mcp"`},
		"no issuer":           {set(protected, "authorization_servers", []string{}), "names no authorization server"},
		"plain issuer":        {set(protected, "authorization_servers", []string{"http://a.example"}), "not an https"},
		"another issuer":      {set(issuer, "issuer", "https://example.com"), `that of "https://example.com"`},
		"no PKCE":             {set(issuer, "code_challenge_methods_supported", nil), "PKCE with S256"},
		"plain PKCE":          {set(issuer, "code_challenge_methods_supported", []string{"plain"}), "PKCE with S256"},
		"script as endpoint":  {set(issuer, "authorization_endpoint", "javascript:alert(1)"), "not an https address"},
		"plain token":         {set(issuer, "token_endpoint", "http://example.com/token"), "not an https address"},
		"no token endpoint":   {set(issuer, "token_endpoint", ""), "not an https address"},
		"huge metadata":       {set(issuer, "padding", strings.Repeat("x", 2<<20)), "larger than 1048576 bytes"},
		"other types":         {set(issuer, "token_endpoint", 5), `"token_endpoint" is number`},
		"no registration":     {&authserver.Server{NoDCR: true}, "oauth.clientId"},
		"mix-up":              {answered("iss", "https://example.com"), `is from "https://example.com"`},
		"no iss":              {answered("iss"), "does not say that it is from"},
		"no code":             {answered("code"), "no code"},
		"wrong code":          {answered("code", "wrong"), "invalid_grant"},
		"denied":              {answered("error", "access_denied"), "access_denied"},
		"denied with a page":  {answered("error", "<script>alert(1)</script>"), "script"},
		"empty iss is no iss": {answered("iss", ""), "is from"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := account(t, serve(t, c.server).URL+authserver.MCP)
			l, page, err := login(t, a)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v; want %s", l, err, c.want)
			}
			if page != "" && !strings.Contains(page, "Not logged in") || strings.Contains(page, "<script") {
				t.Errorf("the page is %s", page)
			}
			if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), "verifier=[", ""), "verifier=") {
				t.Errorf("what was sent is in %v", err)
			}
			if text, err := a.Token(t.Context()); text != "" || err != nil {
				t.Errorf("the token is %q, %v", text, err)
			}
		})
	}
}

// The secret of a registered client goes to the authorization server that it is
// registered at.
func TestTrustedIssuer(t *testing.T) {
	t.Parallel()
	clients := map[string]string{"me": "secret"}
	other := &authserver.Server{Clients: clients}
	elsewhere := serve(t, other)
	moved := false
	s := &authserver.Server{Clients: clients, Metadata: func(kind string, m map[string]any) {
		if moved && kind == "oauth-protected-resource" {
			m["authorization_servers"] = []string{elsewhere.URL}
		}
	}}
	w := serve(t, s)
	a := account(t, w.URL+authserver.MCP)
	a.ClientID, a.ClientSecret = "me", "secret"
	if _, _, err := login(t, a); err != nil {
		t.Fatal(err)
	}
	moved = true
	if _, _, err := login(t, a); err == nil || !strings.Contains(err.Error(), "log out first") {
		t.Error(err)
	}
	a.Issuer = w.URL
	if _, _, err := login(t, a); err == nil || !strings.Contains(err.Error(), "oauth.issuer") {
		t.Error(err)
	}
	moved = false
	if _, _, err := login(t, a); err != nil {
		t.Error(err)
	}
	if other.Count("/token")+other.Count("/authorize") > 0 {
		t.Error("the other one was asked for a token")
	}
}

// An answer without the state is not the one that is waited for, and ends
// nothing.
func TestState(t *testing.T) {
	t.Parallel()
	a := account(t, serve(t, &authserver.Server{}).URL+authserver.MCP)
	pages := make(chan string, 3)
	l, err := a.Login(t.Context(), &Ask{Show: func(address string) {
		u, err := url.Parse(address)
		if err != nil {
			t.Error(err)
		}
		back := u.Query().Get("redirect_uri")
		go func() { // ends with the last page, which is waited for
			pages <- browse(t, back+"?code=stolen&state=wrong")
			pages <- browse(t, strings.Replace(back, "/callback", "/other", 1))
			pages <- browse(t, address)
		}()
	}})
	if err != nil || l == nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not the answer to the login", "404", "garra is logged in"} {
		if page := <-pages; !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
}

// The address that the browser was sent to can be pasted, from another machine.
func TestPasted(t *testing.T) {
	t.Parallel()
	a := account(t, serve(t, &authserver.Server{}).URL+authserver.MCP)
	for change, want := range map[string]string{"": "", "state=": "another login", "nonsense": "not the address"} {
		pasted := make(chan string, 1)
		_, err := a.Login(t.Context(), &Ask{Pasted: pasted, Show: func(address string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
			if err != nil {
				t.Error(err)
			}
			res, err := client().Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
			text := res.Header.Get("Location")
			if change == "nonsense" {
				text = change
			} else if change != "" {
				text = strings.Replace(text, change, change+"x", 1)
			}
			pasted <- " " + text + "\n"
		}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", change, err)
		}
	}
}

// A login ends with its context, and with a port that is taken.
func TestLoginEnds(t *testing.T) {
	t.Parallel()
	a := account(t, serve(t, &authserver.Server{}).URL+authserver.MCP)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	if _, err := a.Login(ctx, &Ask{Show: func(string) { cancel(why) }}); !errors.Is(err, why) {
		t.Error(err)
	}
	w, err := listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	u, _ := url.Parse(w.redirect)
	a = account(t, a.URL.String())
	a.CallbackPort = mustPort(t, u)
	if _, _, err := login(t, a); err == nil || !strings.Contains(err.Error(), "callbackPort") {
		t.Error(err)
	}
}
