// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/authserver"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/oauth"
	"github.com/garraia/garra/source"
)

// behind is an MCP server behind an authorization server.
func behind(t *testing.T, s *authserver.Server) *web {
	t.Helper()
	s.Inner = &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, "{}") }}
	return serve(t, s)
}

// keeping keeps logins in a folder.
func keeping(dir string) func(*Options) {
	return func(o *Options) { o.Logins = oauth.NewStore(dir) }
}

// logIn logs in to a server of a rig, as another process does.
func logIn(t *testing.T, r *rig, dir, name string, scopes ...string) error {
	t.Helper()
	options := r.options
	options.Logins = oauth.NewStore(dir)
	entry, _ := r.config.Server(name) // the test applied it
	account, err := Account(t.Context(), entry, options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var browsing sync.WaitGroup
	defer browsing.Wait()
	_, err = account.Login(ctx, &oauth.Ask{Scopes: scopes, Show: func(address string) {
		browsing.Go(func() { // ends with the browser's page; logIn waits for it
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body) // the page is for people
			res.Body.Close()
		})
	}})
	return err
}

// secretless makes sure that no event shows a token.
func secretless(t *testing.T, r *rig) {
	t.Helper()
	for _, text := range []string{"access-", "refresh-", "Bearer "} {
		if said := r.Saw(text); said != "" {
			t.Errorf("an event shows a token: %s", said)
		}
	}
}

// A server that wants a login says so, starts by itself when somebody has logged
// in, and renews its token as often as it takes.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	w, dir := behind(t, s), filepath.Join(t.TempDir(), "oauth")
	r := newRig(t, keeping(dir))
	server := r.add(at(w.URL + authserver.MCP))
	status := r.state("s", source.Failed)
	contains(t, status.LastError.Error(), "wants a login", "`garra mcp login s`", "401")
	_, err := server.Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.ServerFailed).Error(), "`garra mcp login s`")

	if err := logIn(t, r, dir, "s"); err != nil {
		t.Fatal(err)
	}
	r.state("s", source.Ready)
	for range 2 {
		s.Expire(false)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { // ends with its call; the test waits for it
				if _, err := server.Call(t.Context(), tool("x", nil)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	if s.Count("refresh_token") != 2 || len(s.Problems()) > 0 {
		t.Errorf("refreshed %d times: %v", s.Count("refresh_token"), s.Problems())
	}

	s.Expire(true)
	_, err = server.Call(t.Context(), tool("x", nil))
	f := failed(t, err, source.ServerFailed)
	contains(t, f.Error(), "nobody is logged in any more", "`garra mcp login s`")
	status = r.state("s", source.Failed)
	contains(t, status.LastError.Error(), "`garra mcp login s`")
	if err := logIn(t, r, dir, "s"); err != nil {
		t.Fatal(err)
	}
	r.state("s", source.Ready)
	secretless(t, r)
	for _, header := range s.Seen() {
		if header != "" && !strings.HasPrefix(header, "Bearer access-") {
			t.Errorf("the server got %q", header)
		}
	}
}

// Two gateways that find the token ended refresh it once.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	w, dir := behind(t, s), filepath.Join(t.TempDir(), "oauth")
	rigs := []*rig{newRig(t, keeping(dir)), newRig(t, keeping(dir))}
	for i, r := range rigs {
		server := r.add(at(w.URL + authserver.MCP))
		if i == 0 {
			r.state("s", source.Failed)
			if err := logIn(t, r, dir, "s"); err != nil {
				t.Fatal(err)
			}
		}
		r.state(server.Origin().Server, source.Ready)
	}
	s.Expire(false)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() { // ends with its call; the test waits for it
			if _, err := rigs[i%2].Server("s").Call(t.Context(), tool("x", nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s.Count("refresh_token") != 1 || len(s.Problems()) > 0 {
		t.Errorf("refreshed %d times: %v", s.Count("refresh_token"), s.Problems())
	}
}

// A right that the token lacks is named, with the command that gets it.
func TestInsufficientScope(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{Scopes: "read"}
	w, dir := behind(t, s), filepath.Join(t.TempDir(), "oauth")
	r := newRig(t, keeping(dir))
	server := r.add(at(w.URL + authserver.MCP))
	r.state("s", source.Failed)
	if err := logIn(t, r, dir, "s"); err != nil {
		t.Fatal(err)
	}
	r.state("s", source.Ready)
	s.Require("files:write")
	_, err := server.Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.ServerFailed).Error(),
		`that takes "files:write"`, "`garra mcp login s --scope files:write`")
	if server.Status().State != source.Ready {
		t.Errorf("the server is %s", server.Status().State)
	}
	if err := logIn(t, r, dir, "s", "files:write"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Call(t.Context(), tool("x", nil)); err != nil {
		t.Error(err)
	}
	s.Require("$(rm)")
	_, err = server.Call(t.Context(), tool("x", nil))
	if f := failed(t, err, source.ServerFailed); strings.Contains(f.Fix, "$(") {
		t.Errorf("the command has what the server chose: %s", f.Fix)
	}
	secretless(t, r)
}

// The token of a url goes to no other, and one that the entry has wins.
func TestTokenStaysWithItsURL(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{}
	w, dir := behind(t, s), filepath.Join(t.TempDir(), "oauth")
	r := newRig(t, keeping(dir))
	r.add(at(w.URL + authserver.MCP))
	r.state("s", source.Failed)
	if err := logIn(t, r, dir, "s"); err != nil {
		t.Fatal(err)
	}
	r.state("s", source.Ready)

	other := serve(t, s.Inner)
	r.only(at(other.URL + authserver.MCP))
	other.each(func(r *http.Request) {
		if h := r.Header.Get("Authorization"); h != "" {
			t.Errorf("another server got %q", h)
		}
	})
	own := at(w.URL+authserver.MCP).With("headers", args{"authorization": "Bearer my own"})
	server := r.add(own)
	status := r.state("s", source.Failed)
	contains(t, status.LastError.Error(), "the Authorization in headers (mcp.json:4) is not what it wants")
	if seen := s.Seen(); seen[len(seen)-1] != "Bearer my own" {
		t.Errorf("it got %q", seen[len(seen)-1])
	}
	if err := logIn(t, r, dir, server.Origin().Server); err == nil || !strings.Contains(err.Error(), "Authorization") {
		t.Error(err)
	}
}

// A refused server without OAuth is as it was.
func TestNoOAuth(t *testing.T) {
	t.Parallel()
	w := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	dir := t.TempDir()
	r := newRig(t, keeping(dir))
	r.add(at(w.URL))
	status := r.state("s", source.Failed)
	contains(t, status.LastError.Error(), "in headers")
	if err := logIn(t, r, dir, "s"); err == nil || !strings.Contains(err.Error(), "nothing about OAuth") {
		t.Error(err)
	}
	if _, err := Account(t.Context(), &mcpconfig.Server{Name: "x", Transport: mcpconfig.Stdio}, Options{}); err == nil {
		t.Error("a server without a url has a login")
	}
}

// References of oauth that can't be resolved keep the server from starting.
func TestReferencesOfOAuth(t *testing.T) {
	t.Parallel()
	s := &authserver.Server{NoDCR: true, Clients: map[string]string{"me": "open sesame"}}
	w, dir := behind(t, s), filepath.Join(t.TempDir(), "oauth")
	r := newRig(t, keeping(dir))
	entry := at(w.URL + authserver.MCP)
	r.add(entry.With("oauth", args{"clientId": "me", "clientSecret": "${env:NO_SUCH}"}))
	contains(t, r.state("s", source.Failed).LastError.Error(), "oauth.clientSecret", "NO_SUCH", "mcp.json")
	r.add(entry.With("oauth", args{"client_id": "me", "client_secret": "${env:TOKEN}"}))
	eventually(t, "it wants a login", func() bool {
		e := r.Server("s").Status().LastError
		return e != nil && strings.Contains(e.Fix, "garra mcp login")
	})
	if err := logIn(t, r, dir, "s"); err != nil {
		t.Fatal(err)
	}
	r.state("s", source.Ready)
}

// What metadata names is asked only where the entry allows it, wherever its own
// server is.
func TestNamedAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		home, host, addr string
		want             bool
	}{
		{"mcp.example.com", "login.example.com", "8.8.8.8", true},
		{"mcp.example.com", "169.254.169.254", "169.254.169.254", false},
		{"mcp.example.com", "login.example.com", "169.254.169.254", false},
		{"mcp.example.com", "10.0.0.1", "10.0.0.1", false},
		{"mcp.example.com", "localhost", "127.0.0.1", false},
		{"mcp.example.com", "127.0.0.1", "127.0.0.1", false},
		{"mcp.example.com", "[::1]", "::1", false},
		{"10.0.0.1", "10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", "10.0.0.2", false},
		{"127.0.0.1", "localhost", "127.0.0.1", true},
		{"localhost", "127.0.0.1", "127.0.0.1", true},
		{"localhost", "localhost", "10.0.0.1", false},
		{"127.0.0.1", "10.0.0.1", "10.0.0.1", false},
	} {
		g := &guard{home: c.home}
		if got := g.allows(c.host, netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%s names %s at %s: %v", c.home, c.host, c.addr, got)
		}
	}
}

// Metadata leads to no address that is not for it, and to no other origin.
func TestHostileMetadata(t *testing.T) {
	t.Parallel()
	const issuer = "oauth-authorization-server"
	for name, c := range map[string]struct {
		metadata func(kind string, m map[string]any)
		want     string
	}{
		"a private issuer": {func(kind string, m map[string]any) {
			m["authorization_servers"] = []string{"https://169.254.169.254"}
		}, "not on the internet"},
		"a private token endpoint": {func(kind string, m map[string]any) {
			if kind == issuer {
				m["registration_endpoint"] = "https://10.255.255.1/register"
			}
		}, "not on the internet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, dir := behind(t, &authserver.Server{Metadata: c.metadata}), filepath.Join(t.TempDir(), "oauth")
			r := newRig(t, keeping(dir))
			r.add(at(w.URL + authserver.MCP))
			r.state("s", source.Failed)
			if err := logIn(t, r, dir, "s"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
	elsewhere := serve(t, http.NotFoundHandler())
	turns := 0
	w := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/loop"):
			turns++
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/.well-known"):
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/loop"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	dir := t.TempDir()
	r := newRig(t, keeping(dir))
	r.add(at(w.URL + "/mcp"))
	r.state("s", source.Failed)
	if err := logIn(t, r, dir, "s"); err == nil || !strings.Contains(err.Error(), "302") {
		t.Error(err)
	}
	if turns > maxRedirects+1 || elsewhere.seen(http.MethodGet) > 0 {
		t.Errorf("%d turns, %d elsewhere", turns, elsewhere.seen(http.MethodGet))
	}
}

// While nobody logs in, a server that needs that is not asked again and again.
func TestNoLoginNoTries(t *testing.T) {
	t.Parallel()
	w, dir := behind(t, &authserver.Server{}), filepath.Join(t.TempDir(), "oauth")
	looked := make(chan struct{})
	r := newRig(t, keeping(dir), limited(func(l *limits) { l.recheck = time.Millisecond }), func(o *Options) {
		o.Secrets = secretFunc(func(context.Context, string, string) (string, error) {
			select {
			case looked <- struct{}{}: // the test waits for looks
			default: // the start, or a look that nobody waits for
			}
			return "open sesame", nil
		})
	})
	server := r.add(at(w.URL+authserver.MCP).With("headers", args{"X-Key": "vault:key"}))
	r.state("s", source.Failed)
	posts := w.seen(http.MethodPost)
	for range 5 {
		<-looked
	}
	if n := w.seen(http.MethodPost); n != posts {
		t.Errorf("%d requests, then %d", posts, n)
	}
	if states := r.States("s"); !slices.Equal(states, []source.State{source.Starting, source.Failed}) {
		t.Errorf("it went through %v", states)
	}
	if errors.Is(server.Status().LastError, context.Canceled) {
		t.Error("cancelled")
	}
}
