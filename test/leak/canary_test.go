// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A canary is a secret that occurs nowhere else.
type canary struct {
	name  string
	value string   // as somebody hands it to garra
	parts []string // what of it is secret: all, or lines, or a password in it

	// held says that a server which runs was given it, so that it is taken out of
	// whatever servers say.
	held bool
	// own says that it is in garra's own environment from the start, where the
	// system shows it.
	own bool
	// in are the servers whose processes may have it.
	in []string
}

// A flock is all canaries of a run, by name.
type flock map[string]*canary

// random returns a text that nobody wrote before, of 130 bits.
func random() string { return rand.Text()[:13] + strings.ToLower(rand.Text())[:13] }

// add makes a canary whose value is secret as a whole.
func (f flock) add(name string) *canary { return f.put(name, random()) }

// put makes a canary of a value, which is secret as a whole unless parts are named.
func (f flock) put(name, value string, parts ...string) *canary {
	if parts == nil {
		parts = []string{value}
	}
	f[name] = &canary{name: name, value: value, parts: parts}
	return f[name]
}

// value returns the value of a canary.
func (f flock) value(name string) string { return f[name].value }

// hatch makes all canaries but the tokens, which garra makes.
func hatch(t *testing.T) flock {
	t.Helper()
	f := make(flock)
	for _, name := range []string{
		"passphrase", "wrong passphrase", "wrong token", "unused", "missing beside", "unset beside", "unset plain",
		"no command", "no command plain", "stale", "denied",
		"broken url", "disabled", "invalid", "no file", "bad header", "crash",
	} {
		f.add(name)
	}
	for _, name := range []string{"cwd", "bystander"} {
		f.add(name).own = true
	}
	for _, name := range []string{"own", "shared", "file", "plain", "env file", "store", "block", "slow"} {
		f.add(name).held = true
	}
	for _, name := range []string{"header", "plain header", "url password", "url query", "client secret"} {
		f.add(name).held = true
	}
	for _, name := range []string{"host", "argument", "place"} {
		c := f.add(name)
		c.held, c.own = true, true
	}
	f.put("odd", `"`+random()+`"\é€😀<&'>/ %+`+random()).held = true
	f.addPEM()
	f.addCompound(t)
	f.allow()
	return f
}

// addPEM makes a canary of several lines.
func (f flock) addPEM() {
	lines := []string{random() + random(), random() + random(), random()}
	text := "-----BEGIN PRIVATE KEY-----\n" + strings.Join(lines, "\n") + "\n-----END PRIVATE KEY-----\n"
	f.put("key", text, lines...).held = true
}

// addCompound makes canaries that are parts of their values.
func (f flock) addCompound(t *testing.T) {
	t.Helper()
	password := random()
	f.put("database", "postgres://app:"+password+"@127.0.0.1/app", password).held = true
	key := random()
	account, err := json.Marshal(map[string]string{"type": "service_account", "private_key": key})
	if err != nil {
		t.Fatal(err)
	}
	f.put("account", string(account), key).held = true
}

// allow says which processes may have which canaries.
func (f flock) allow() {
	for server, names := range map[string][]string{
		"full": {
			"own", "shared", "plain", "env file", "store", "host", "argument", "odd", "key", "database", "account",
		},
		"other": {"shared"}, "guarded": {"block"}, "slow": {"slow"}, "crashy": {"crash"},
		"web": {"header", "plain header", "url password", "url query"}, "refused": {"denied"},
	} {
		for _, name := range names {
			f[name].in = append(f[name].in, server)
		}
	}
}

// mayHave tells whether a process of a server may have the canary; "" is garra.
func (c *canary) mayHave(server string) bool {
	if server == "" {
		return c.own
	}
	for _, s := range c.in {
		if s == server {
			return true
		}
	}
	return false
}

func (c *canary) String() string { return fmt.Sprintf("the canary %q", c.name) }
