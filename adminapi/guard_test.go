// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/gateway"
)

// newDoor serves an API without servers at an address, behind its tokens.
func newDoor(t *testing.T, tokens *Tokens) *httptest.Server {
	t.Helper()
	return serveDoor(t, tokens, func(*API) {})
}

// serveDoor is newDoor for an API that is set up further.
func serveDoor(t *testing.T, tokens *Tokens, setUp func(*API)) *httptest.Server {
	t.Helper()
	g := gateway.New(gateway.Options{})
	api := &API{
		Gateway: g, Events: NewEvents(), Loaded: func() bool { return true },
		Reload: func(context.Context) error { return nil },
	}
	setUp(api)
	routes := api.routes(newStreams(t.Context()))
	s := httptest.NewServer((&door{tokens: tokens, hosts: []string{"Gateway.Example"}}).guard(routes))
	t.Cleanup(func() { s.Close(); g.Close() })
	return s
}

func newTokens(t *testing.T) *Tokens {
	return OpenTokens(filepath.Join(t.TempDir(), "tokens.json"))
}

// create makes a token, or fails the test.
func create(t *testing.T, tokens *Tokens, role Role) (Token, string) {
	t.Helper()
	token, secret, err := tokens.Create(role, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return token, secret
}

// get asks for a path under a Host header of the test's own, if it has one.
func get(t *testing.T, s *httptest.Server, path, host string, headers ...string) (status int, code string) {
	t.Helper()
	return ask(t, request(t, http.MethodGet, s.URL+path), host, headers...)
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// ask makes a request and returns the status and, of an error, its code.
func ask(t *testing.T, req *http.Request, host string, headers ...string) (status int, code string) {
	t.Helper()
	if host != "" {
		req.Host = host
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body struct{ Error struct{ Code string } }
	_ = json.NewDecoder(resp.Body).Decode(&body) // an answer that is no error has no code
	if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: no security headers", req.URL)
	}
	return resp.StatusCode, body.Error.Code
}

func TestBrowsersAreRefused(t *testing.T) {
	tokens := newTokens(t)
	_, secret := create(t, tokens, RoleAdmin)
	s := newDoor(t, tokens)
	auth := []string{"Authorization", "Bearer " + secret}
	for name, tt := range map[string]struct {
		host    string
		headers []string
		want    int
	}{
		"plain":              {"", nil, 200},
		"localhost":          {"localhost:3888", nil, 200},
		"IPv6 loopback":      {"[::1]:3888", nil, 200},
		"127.0.0.2":          {"127.0.0.2", nil, 200},
		"allowed":            {"Gateway.Example:443", nil, 200},
		"rebinding":          {"attacker.example", nil, 403},
		"like localhost":     {"localhost.attacker.example", nil, 403},
		"own origin":         {"", []string{"Origin", "http://localhost:3888"}, 200},
		"foreign origin":     {"", []string{"Origin", "https://attacker.example"}, 403},
		"disguised origin":   {"", []string{"Origin", "http://localhost:1@attacker.example"}, 403},
		"null origin":        {"", []string{"Origin", "null"}, 403},
		"file origin":        {"", []string{"Origin", "file://"}, 403},
		"cross-site":         {"", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"same-site":          {"", []string{"Sec-Fetch-Site", "same-site"}, 403},
		"typed by a person":  {"", []string{"Sec-Fetch-Site", "none"}, 200},
		"no-cors same-site":  {"", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		"unknown fetch site": {"", []string{"Sec-Fetch-Site", "future"}, 403},
	} {
		got, code := get(t, s, "/admin/mcp", tt.host, append(auth, tt.headers...)...)
		if got != tt.want {
			t.Errorf("%s: %d %s, want %d", name, got, code, tt.want)
		}
	}
}

func TestTokensOpenTheirRoutesOnly(t *testing.T) {
	tokens := newTokens(t)
	secrets := map[Role]string{"": "", "wrong": "garra_nonsense"}
	for _, role := range []Role{RoleClient, RoleViewer, RoleOperator, RoleAdmin} {
		_, secrets[role] = create(t, tokens, role)
	}
	s := newDoor(t, tokens)
	for _, tt := range []struct {
		method, path string
		want         map[Role]int
	}{
		{"GET", "/admin/mcp", map[Role]int{"": 401, "wrong": 401, RoleClient: 403, RoleViewer: 200, RoleAdmin: 200}},
		{"GET", "/admin/mcp/x", map[Role]int{RoleViewer: 404, RoleClient: 403}},
		{"POST", "/admin/mcp/x/restart", map[Role]int{
			"": 401, RoleViewer: 403, RoleOperator: 404, RoleAdmin: 404, RoleClient: 403,
		}},
		{"POST", "/admin/reload", map[Role]int{RoleViewer: 403, RoleOperator: 200}},
		{"POST", "/mcp", map[Role]int{"": 401, "wrong": 401, RoleClient: 415, RoleViewer: 403, RoleAdmin: 403}},
		{"DELETE", "/mcp/x", map[Role]int{"": 401, RoleAdmin: 403, RoleClient: 400}},
		{"GET", "/healthz", map[Role]int{"": 200, "wrong": 401, RoleClient: 200}},
		{"GET", "/readyz", map[Role]int{"": 200}},
		{"GET", "/nothing", map[Role]int{"": 404}},
		{"POST", "/attach", map[Role]int{"": 404, RoleAdmin: 404}}, // the socket's alone
	} {
		for role, want := range tt.want {
			headers := []string{}
			if role != "" {
				headers = []string{"Authorization", "bearer " + secrets[role]}
			}
			if got, code := ask(t, request(t, tt.method, s.URL+tt.path), "", headers...); got != want {
				t.Errorf("%s %s as %q: %d %s, want %d", tt.method, tt.path, role, got, code, want)
			}
		}
	}
}

func TestWithoutAuthEverybodyIsIn(t *testing.T) {
	s := newDoor(t, nil)
	if got, _ := get(t, s, "/admin/mcp", ""); got != 200 {
		t.Errorf("got %d", got)
	}
	if got, _ := get(t, s, "/admin/mcp", "attacker.example"); got != 403 {
		t.Errorf("rebinding: %d", got)
	}
}

func TestReadyzNamesServersOnlyToAdministrators(t *testing.T) {
	tokens := newTokens(t)
	_, secret := create(t, tokens, RoleViewer)
	s := newDoor(t, tokens)
	for auth, want := range map[string]bool{"": false, "Bearer " + secret: true} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/readyz", http.NoBody)
		if auth != "" {
			req.Header.Set("Authorization", auth)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, named := body["servers"]; named != want || body["ready"] != true {
			t.Errorf("with %q: %v", auth, body)
		}
	}
}

func TestTokensAreStoredAsDigests(t *testing.T) {
	tokens := newTokens(t)
	token, secret := create(t, tokens, RoleClient)
	data, err := os.ReadFile(tokens.path)
	if err != nil || strings.Contains(string(data), strings.TrimPrefix(secret, tokenPrefix)) {
		t.Errorf("the file holds the token: %s %v", data, err)
	}
	if info, err := os.Stat(tokens.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	// Another process: what it creates and revokes is seen at once.
	other := OpenTokens(tokens.path)
	if _, ok := other.Find(secret); !ok {
		t.Error("another process doesn't know the token")
	}
	second, secret2 := create(t, other, RoleViewer)
	if found, ok := tokens.Find(secret2); !ok || found.ID != second.ID {
		t.Error("the new token is not seen")
	}
	if err := other.Revoke(token.ID); err != nil {
		t.Error(err)
	}
	if _, ok := tokens.Find(secret); ok || !tokens.Revoked()(tokenPrincipal(token.ID)) {
		t.Error("a revoked token is let in")
	}
	if revoked := tokens.Revoked(); revoked("local") || revoked(tokenPrincipal(second.ID)) {
		t.Error("somebody else's token was revoked")
	}
	if err := tokens.Revoke("nobody"); err == nil {
		t.Error("revoking an unknown token succeeds")
	}
}

func TestADamagedTokenFileLetsNobodyIn(t *testing.T) {
	tokens := newTokens(t)
	_, secret := create(t, tokens, RoleAdmin)
	if err := os.WriteFile(tokens.path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Find(secret); ok {
		t.Error("let in")
	}
	if _, _, err := tokens.Create(RoleAdmin, "", time.Now()); err == nil {
		t.Error("a damaged file is overwritten")
	}
}

func TestParallelProcessesLoseNoToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	const each, writers = 10, 4
	done := make(chan error, writers)
	for range writers {
		go func() {
			tokens := OpenTokens(path)
			for range each {
				if _, _, err := tokens.Create(RoleClient, "c", time.Now()); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if list, err := OpenTokens(path).List(); err != nil || len(list) != each*writers {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}

func TestSocketIsPrivateAndReplacesAStaleOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.sock")
	l, err := ListenSocket(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
	if _, err := ListenSocket(path); err == nil {
		t.Error("a socket in use is replaced")
	}
	l.Close()
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the test needs a stale socket: %v", err)
	}
	l, err = ListenSocket(path)
	if err != nil {
		t.Fatalf("a stale socket is not replaced: %v", err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
		}
	}()
	if conn, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
}

func TestDialTellsThatNothingRuns(t *testing.T) {
	_, err := Dial(t.Context(), filepath.Join(t.TempDir(), "run.sock"))
	if !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}
