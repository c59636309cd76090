// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// discard is a logger that says nothing.
func discard() *log.Logger { return log.New(io.Discard, "", 0) }

// secretFunc is a function as a vault.
type secretFunc func(ctx context.Context, server, key string) (string, error)

// Stores implements envbuild.Secrets.
func (secretFunc) Stores() []string { return nil }

func (f secretFunc) Secret(ctx context.Context, server, key string) (string, error) {
	return f(ctx, server, key)
}

// References are resolved for each request, and what garra needs stands over
// what the entry says.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var turn atomic.Int32
	got := make(chan http.Header, 100)
	w := serve(t, &script{
		call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, "{}") },
		post: func(_ http.ResponseWriter, r *http.Request, m *protocol.Message) bool {
			if m.Method == protocol.MethodToolsCall {
				got <- r.Header.Clone()
			}
			return false
		},
	})
	r := newRig(t, func(o *Options) {
		o.Host.Env = []string{"PLACE=/mcp", "TRAILING=line\n", "TRAILING=second"}
		o.Secrets = secretFunc(func(_ context.Context, server, key string) (string, error) {
			turn.Add(1)
			return server + "-" + key + "-" + strings.Repeat("i", int(turn.Load())), nil
		})
	})
	s := r.only(at(w.URL+"${PLACE}?k=${X:-v}").With("headers", args{
		"Authorization": "Bearer ${vault:key}", "X-Whole": "vault:whole", "X-Line": "${TRAILING}", "X-Plain": "$${a}",
		"Accept": "text/html", "content-type": "text/html", "Mcp-Session-Id": "mine", "Accept-Encoding": "br",
		"User-Agent": "me",
	}))
	eventually(t, "the standing stream was asked for", func() bool { return w.seen(http.MethodGet) == 1 })
	turn.Store(0)
	for _, want := range []string{"Bearer s-key-i", "Bearer s-key-iii"} {
		if _, err := s.Call(t.Context(), tool("x", nil)); err != nil {
			t.Fatal(err)
		}
		h := <-got
		for name, value := range map[string]string{
			"Authorization": want, "X-Whole": strings.Replace(want, "Bearer s-key", "s-whole", 1) + "i",
			"X-Line": "line", "X-Plain": "${a}", "Accept": "application/json, text/event-stream",
			"Content-Type": "application/json", "Mcp-Session-Id": "the-session", "Accept-Encoding": "gzip",
			"User-Agent": "me", "Mcp-Protocol-Version": "2025-06-18",
		} {
			if h.Get(name) != value || len(h.Values(name)) != 1 {
				t.Errorf("%s is %q, want %q", name, h.Values(name), value)
			}
		}
	}
	w.each(func(r *http.Request) {
		if r.RequestURI != "/mcp?k=v" {
			t.Errorf("asked for %s", r.RequestURI)
		}
	})
}

// What can't be resolved is not sent; the failure names file and field, and the
// server starts once it can be.
func TestUnresolvedReferences(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{call: func(w http.ResponseWriter, _ *http.Request, id Raw) { answerJSON(w, id, "{}") }})
	var open atomic.Bool
	vault := secretFunc(func(context.Context, string, string) (string, error) {
		if open.Load() {
			return "secret", nil
		}
		return "", errors.New("it is locked")
	})
	for _, test := range []struct {
		entry fields
		code  source.Code
		parts []string
	}{
		{
			at(w.URL).With("headers", args{"X-Key": "${NOWHERE}"}), source.ServerFailed,
			[]string{"headers.X-Key (", "mcp.json:", `"NOWHERE" is not set`, "${NOWHERE:-default}"},
		},
		{
			at(w.URL+"/${NOWHERE}").With("headers", args{"B": "x${env:NEITHER}"}), source.ServerFailed,
			[]string{"url (", `"NOWHERE"`, "; and headers.B (", `"NEITHER"`},
		},
		{
			at(w.URL).With("headers", args{"X-Key": "vault:k"}), source.SecretMissing,
			[]string{`secret "k" is not available: it is locked`, "open the vault"},
		},
		{at("${TOKEN}"), source.ServerFailed, []string{"url (", "is not an http or https address"}},
		{at("file:///etc/${PASSWD:-passwd}"), source.ServerFailed, []string{"is not an http or https address"}},
		{
			at(w.URL).With("headers", args{"X": "${BAD}"}), source.ServerFailed,
			[]string{"headers.X (", "control character"},
		},
	} {
		r := newRig(t, func(o *Options) { o.Secrets = vault })
		r.add(test.entry)
		f := r.state("s", source.Failed).LastError
		contains(t, f.Error(), test.parts...)
		_, err := r.Server("s").Call(t.Context(), tool("x", nil))
		contains(t, failed(t, err, test.code).Error(), test.parts...)
		if strings.Contains(f.Error(), "sesame") {
			t.Errorf("it tells a value: %v", f)
		}
	}
	if n := w.seen(http.MethodPost); n > 0 {
		t.Errorf("%d requests came", n)
	}
	r := newRig(t, func(o *Options) { o.Secrets = vault })
	s := r.add(at(w.URL).With("headers", args{"X-Key": "vault:k"}))
	r.state("s", source.Failed)
	open.Store(true)
	r.state("s", source.Ready)
	open.Store(false)
	_, err := s.Call(t.Context(), tool("x", nil))
	contains(t, failed(t, err, source.SecretMissing).Error(), "it is locked")
	r.state("s", source.Failed)
}

// Messages about what went wrong show no part of an address but its origin.
func TestAddressesStaySecret(t *testing.T) {
	t.Parallel()
	closed := listen(t, "127.0.0.1:0")
	address := closed.Addr().String()
	_ = closed.Close()
	r := newRig(t)
	r.add(at("http://me:hush-hush@" + address + "/path-of-key?token=abcdefg"))
	f := r.state("s", source.Backoff).LastError
	contains(t, f.Error(), "http://"+address)
	for _, secret := range []string{"hush", "path-of", "abcdefg", "me:"} {
		if strings.Contains(f.Error(), secret) || r.Saw(secret) != "" {
			t.Errorf("%q is shown: %v", secret, f)
		}
	}
	w := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		http.Error(w, "no "+user+" "+password+" "+r.URL.RawQuery, http.StatusTeapot)
	}))
	other := newRig(t, limited(func(l *limits) { l.recheck = time.Hour }))
	other.add(at(strings.Replace(w.URL, "//", "//me:hush-hush@", 1) + "?token=abcdefg"))
	f = other.state("s", source.Failed).LastError
	contains(t, f.Error(), "418", `"no me [redacted:url] token=[redacted:url.token]"`)
	if strings.Contains(f.Error(), "hush") || strings.Contains(f.Error(), "abcdefg") {
		t.Errorf("%v", f)
	}
}
