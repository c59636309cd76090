// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"maps"
	"slices"
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

	mu   sync.Mutex   // guards what follows
	held []veiledText // oldest first
}

// A veiledText is a value that is held.
type veiledText struct {
	redact.Value
	release func()
}

func newVeil(o *Options) *veil { return &veil{set: o.Redact, blocked: o.Blocked} }

// cover holds values; of several names for one text the first is shown.
func (v *veil) cover(values ...redact.Value) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, value := range values {
		if v.blocked != nil && v.blocked(value.Name) {
			value.Policy = redact.Block
		}
		if value.Text != "" {
			v.coverLocked(value)
		}
	}
	for len(v.held) > maxVeiled {
		v.dropLocked(0)
	}
}

// coverLocked holds one value, unless it is held already; then it is the newest one.
func (v *veil) coverLocked(value redact.Value) {
	same := func(h veiledText) bool { return h.Value == value }
	if i := slices.IndexFunc(v.held, same); i >= 0 {
		known := v.held[i]
		v.held = append(slices.Delete(v.held, i, i+1), known)
		return
	}
	v.held = append(v.held, veiledText{value, v.set.Hold([]redact.Value{value})})
	another := func(h veiledText) bool {
		return h.Name == value.Name && h.Text == value.Text && h.Policy != value.Policy
	}
	if i := slices.IndexFunc(v.held, another); i >= 0 { // its policy was another
		v.dropLocked(i)
	}
}

// lift lets go of all values.
func (v *veil) lift() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.held) > 0 {
		v.dropLocked(0)
	}
}

// dropLocked lets go of one value.
func (v *veil) dropLocked(i int) {
	v.held[i].release()
	v.held = slices.Delete(v.held, i, i+1)
}

// veiled are the values of an address that nothing which comes from servers may show;
// secrets are those that were resolved for it, whose names tell more than the places
// where they stand.
func (a *address) veiled(secrets map[string]string, clientSecret string) []redact.Value {
	var values []redact.Value
	add := func(name, text string) { values = append(values, redact.Value{Name: name, Text: text}) }
	for _, key := range slices.Sorted(maps.Keys(secrets)) {
		add(key, secrets[key])
	}
	add("oauth.clientSecret", clientSecret)
	for _, name := range slices.Sorted(maps.Keys(a.headers)) {
		if value := a.headers.Get(name); isSecret(name, value) {
			add("headers."+name, value)
		}
	}
	if password, ok := a.url.User.Password(); ok {
		add("url", password)
	}
	query := a.url.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[name] {
			if _, secret := sensitive.Pair(name, value); secret {
				add("url."+name, value)
			}
		}
	}
	return values
}

// A noting is secrets that are noted down when they are asked for.
type noting struct {
	envbuild.Secrets
	values map[string]string // by key
}

// Secret implements envbuild.Secrets.
func (n noting) Secret(ctx Context, server, key string) (string, error) {
	text, err := n.Secrets.Secret(ctx, server, key)
	if err == nil && text != "" {
		n.values[key] = text
	}
	return text, err
}

// isSecret reports whether a header is one that nobody may see, whether its value is
// written in the entry or not.
func isSecret(header, value string) bool {
	_, secret := sensitive.Header(header, value)
	return secret
}
