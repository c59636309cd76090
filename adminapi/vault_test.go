// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/gateway"
)

// A safe is a vault of which the routes see no more than this.
type safe struct {
	tried     []string // passphrases
	restarted []string
	locked    bool
	err       error
}

func (s *safe) Unlock(_ context.Context, passphrase []byte) ([]string, bool, error) {
	s.tried = append(s.tried, string(passphrase))
	return s.restarted, s.locked, s.err
}

func (s *safe) Unavailable() ([]UnavailableSecret, bool) {
	return []UnavailableSecret{{Server: "one", Key: "k", Message: "it is not there", Fix: "store it"}}, true
}

func (s *safe) Refresh() ([]string, error) { return s.restarted, s.err }

// newSafe serves a vault on a socket and returns a client for it.
func newSafe(t *testing.T) (*safe, *Client) {
	t.Helper()
	s, g := &safe{}, gateway.New(gateway.Options{})
	server := NewServer(&API{Gateway: g, Events: NewEvents(), Loaded: func() bool { return true }, Vault: s})
	socket := filepath.Join(t.TempDir(), "s")
	l, err := ListenSocket(socket)
	if err != nil {
		t.Fatal(err)
	}
	server.ServeSocket(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		server.Shutdown(ctx)
		g.Close()
	})
	client, err := Dial(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	return s, client
}

// An advised error says what to do.
type advised struct{ error }

func (advised) Advice() string { return "do this" }

func TestUnlockVault(t *testing.T) {
	s, client := newSafe(t)
	s.restarted = []string{"a", "b"}
	restarted, err := client.UnlockVault(t.Context(), []byte("päss\nword "))
	if !slices.Equal(restarted, s.restarted) || err != nil {
		t.Errorf("%q, %v", restarted, err)
	}
	s.restarted = nil
	if restarted, err = client.UnlockVault(t.Context(), nil); len(restarted) != 0 || err != nil {
		t.Errorf("%q, %v", restarted, err)
	}
	if want := []string{"päss\nword ", ""}; !slices.Equal(s.tried, want) {
		t.Errorf("tried %q, want %q", s.tried, want)
	}
}

func TestVaultRefuses(t *testing.T) {
	s, client := newSafe(t)
	unlock := func() error { _, err := client.UnlockVault(t.Context(), []byte("hunter2")); return err }
	refresh := func() error { _, err := client.RefreshVault(t.Context()); return err }
	for _, test := range []struct {
		name   string
		ask    func() error
		locked bool
		err    error
		code   string
		fix    string
	}{
		{"a wrong passphrase", unlock, true, errors.New("it doesn't open"), CodeVaultLocked, ""},
		{"another failure", unlock, false, advised{errors.New("it is damaged")}, "vault.refused", "do this"},
		{"no advice", unlock, false, errors.New("it is damaged"), "vault.refused", ""},
		{"what can't be read again", refresh, false, advised{errors.New("it is older")}, "vault.refused", "do this"},
	} {
		s.locked, s.err = test.locked, test.err
		e, ok := errors.AsType[*Error](test.ask())
		if !ok || e.Code != test.code || e.Fix != test.fix || e.Message != test.err.Error() {
			t.Errorf("%s: %#v", test.name, e)
		}
	}
}

func TestBodiesOfUnlock(t *testing.T) {
	s, client := newSafe(t)
	for body, want := range map[string]int{
		`{"passphrase": "x"}`: http.StatusOK,
		`{}`:                  http.StatusOK,
		`{"passphrase": 1}`:   http.StatusBadRequest,
		`["hunter2"]`:         http.StatusBadRequest,
		`hunter2`:             http.StatusBadRequest,
		``:                    http.StatusBadRequest,
		`{"passphrase": "` + strings.Repeat("x", maxPassphraseBody) + `"}`: http.StatusBadRequest,
	} {
		s.tried = nil
		req := request(t, http.MethodPost, "http://localhost/admin/vault/unlock")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		resp, err := client.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || (len(s.tried) == 1) != (want == http.StatusOK) {
			t.Errorf("%.30q: %d, %v, tried %.30q", body, resp.StatusCode, err, s.tried)
		}
		if strings.Contains(string(answer), "hunter2") {
			t.Errorf("%.30q: the answer quotes it: %s", body, answer)
		}
	}
}

// A passphrase doesn't go over a network, whoever sends it; reading the vault again
// takes a token.
func TestVaultOverAnAddress(t *testing.T) {
	tokens, s := newTokens(t), &safe{}
	serve := newVaultDoor(t, tokens, s)
	for role, want := range map[Role][2]int{
		"":           {http.StatusUnauthorized, http.StatusUnauthorized},
		RoleClient:   {http.StatusForbidden, http.StatusForbidden},
		RoleViewer:   {http.StatusForbidden, http.StatusForbidden},
		RoleOperator: {http.StatusForbidden, http.StatusOK},
		RoleAdmin:    {http.StatusForbidden, http.StatusOK},
	} {
		var headers []string
		if role != "" {
			_, secret := create(t, tokens, role)
			headers = []string{"Authorization", "Bearer " + secret}
		}
		for i, path := range []string{"/admin/vault/unlock", "/admin/vault/refresh"} {
			got, code := ask(t, request(t, http.MethodPost, serve+path), "", headers...)
			if got != want[i] {
				t.Errorf("%s as %q: %d %s, want %d", path, role, got, code, want[i])
			}
			if role == RoleAdmin && i == 0 && code != "auth.socket" {
				t.Errorf("an administrator is told %q", code)
			}
		}
	}
	open := newVaultDoor(t, nil, s) // --no-auth
	got, code := ask(t, request(t, http.MethodPost, open+"/admin/vault/unlock"), "")
	if got != http.StatusForbidden || code != "auth.socket" {
		t.Errorf("without tokens: %d %s", got, code)
	}
	if len(s.tried) != 0 {
		t.Errorf("tried %q", s.tried)
	}
}

// newVaultDoor serves a vault at an address, behind tokens, and returns its url.
func newVaultDoor(t *testing.T, tokens *Tokens, s *safe) string {
	t.Helper()
	return serveDoor(t, tokens, func(api *API) { api.Vault = s }).URL
}

func TestVaultIsShown(t *testing.T) {
	s, client := newSafe(t)
	list, _ := s.Unavailable()
	info, err := client.Vault(t.Context())
	if err != nil || !info.Open || !slices.Equal(info.Unavailable, list) {
		t.Errorf("%+v, %v", info, err)
	}
}
