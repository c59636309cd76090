// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"maps"
	"sync"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/sensitive"
	"github.com/garraia/garra/redact"
)

// maxVeiled bounds how many values of one server are kept out of what comes from
// servers: logins are renewed, and each time there is another token.
const maxVeiled = 64

// A veil keeps the values that one run sends out of all that comes from servers, from
// the first time that they are sent until the run ends. It is safe for concurrent use.
type veil struct {
	set     *redact.Set
	blocked func(key string) bool // may be nil

	mu    sync.Mutex // guards both below
	known map[string]bool
	held  []veiled // oldest first
}

// A veiled value is one that is held.
type veiled struct {
	text    string
	release func()
}

func newVeil(o *Options) *veil {
	return &veil{set: o.Redact, blocked: o.Blocked, known: make(map[string]bool)}
}

// cover holds values, by their text; each has the name that is shown instead.
func (v *veil) cover(names map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for text, name := range names {
		if text == "" || v.known[text] {
			continue
		}
		value := redact.Value{Name: name, Text: text}
		if v.blocked != nil && v.blocked(name) {
			value.Policy = redact.Block
		}
		v.known[text] = true
		v.held = append(v.held, veiled{text, v.set.Hold([]redact.Value{value})})
	}
	for len(v.held) > maxVeiled {
		v.dropLocked()
	}
}

// lift lets go of all values.
func (v *veil) lift() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.held) > 0 {
		v.dropLocked()
	}
}

// dropLocked lets go of the oldest value.
func (v *veil) dropLocked() {
	v.held[0].release()
	delete(v.known, v.held[0].text)
	v.held = v.held[1:]
}

// veiled are the values of an address that nothing which comes from servers may show,
// with the names that are shown instead; secrets are those that were resolved for it.
func (a *address) veiled(secrets map[string]string, clientSecret string) map[string]string {
	names := maps.Clone(secrets)
	add := func(name, text string) {
		if _, known := names[text]; !known {
			names[text] = name
		}
	}
	add("oauth.clientSecret", clientSecret)
	for name := range a.headers {
		if value := a.headers.Get(name); isSecret(name, value) {
			add("headers."+name, value)
		}
	}
	if password, ok := a.url.User.Password(); ok {
		add("url", password)
	}
	for name, values := range a.url.Query() {
		for _, value := range values {
			if _, secret := sensitive.Pair(name, value); secret {
				add("url", value)
			}
		}
	}
	return names
}

// A noting is secrets that are noted down when they are asked for.
type noting struct {
	envbuild.Secrets
	names map[string]string // by value
}

// Secret implements envbuild.Secrets.
func (n noting) Secret(ctx Context, server, key string) (string, error) {
	text, err := n.Secrets.Secret(ctx, server, key)
	if err == nil && text != "" {
		n.names[text] = key
	}
	return text, err
}

// isSecret reports whether a header is one that nobody may see, whether its value is
// written in the entry or not.
func isSecret(header, value string) bool {
	_, secret := sensitive.Header(header, value)
	return secret
}
