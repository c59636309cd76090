// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Policy says what is done with a value where it would leave garra in a
// server's answers.
type Policy string

// The policies.
const (
	PolicyDefault Policy = ""       // as the configuration says
	PolicyRedact  Policy = "redact" // the value is taken out
	PolicyBlock   Policy = "block"  // what holds it doesn't leave
)

// valid tells whether p is one of the policies.
func (p Policy) valid() bool { return p == PolicyDefault || p == PolicyRedact || p == PolicyBlock }

// An Entry is what a vault says of one value, without the value.
type Entry struct {
	Name   string
	SetAt  time.Time // when the value was set last; zero when the file doesn't say
	For    []string  // the servers that it is shared with by name, sorted
	Policy Policy
}

// Allows tells whether a server may use the value: the key is its own, or it is
// shared with it by name.
func (e Entry) Allows(server string) bool {
	owner, _, owned := Owner(e.Name)
	return owned && owner == server || slices.Contains(e.For, server)
}

// The bounds of names.
const (
	maxNameLen   = 128
	maxServerLen = 64
	ownPrefix    = "mcp."
)

// Owner splits the name of a server's own key: "mcp.a.b.TOKEN" is TOKEN of the
// server "a.b". The last dot decides, since a server's name may hold dots and the
// name of a variable doesn't. ok is false for names of another form.
func Owner(name string) (server, key string, ok bool) {
	rest, owned := strings.CutPrefix(name, ownPrefix)
	dot := strings.LastIndexByte(rest, '.')
	if !owned || dot < 0 || dot == len(rest)-1 || !isServer(rest[:dot]) {
		return "", "", false
	}
	return rest[:dot], rest[dot+1:], true
}

// OwnName returns the name of a server's own key, "mcp.<server>.<key>". It is a
// name of the server's only if key holds no dot.
func OwnName(server, key string) string { return ownPrefix + server + "." + key }

// CheckName returns [ErrBadName] unless name can name an entry: 1 to 128 ASCII
// letters, digits, "_", "-" and ".", the first a letter, a digit or "_". Such a
// name can stand in a reference (vault:NAME, ${vault:NAME}), on a command line
// and in a URL as it is.
func CheckName(name string) error {
	if name != "" && len(name) <= maxNameLen && isFirstRune(name[0]) && !strings.ContainsFunc(name, notNameRune) {
		return nil
	}
	return &Error{
		Kind: ErrBadName, Message: fmt.Sprintf("%.150q can't name a secret", name),
		Fix: `take up to 128 letters, digits, "_", "-" and "."`,
	}
}

// checkServer returns [ErrBadName] unless name can name a server.
func checkServer(name string) error {
	if isServer(name) {
		return nil
	}
	return &Error{
		Kind: ErrBadName, Message: fmt.Sprintf("%.150q can't name a server", name),
		Fix: `take up to 64 letters, digits, "_", "-" and "."`,
	}
}

func isServer(name string) bool {
	return name != "" && len(name) <= maxServerLen && isFirstRune(name[0]) && name[0] != '_' &&
		!strings.ContainsFunc(name, notNameRune)
}

// isFirstRune tells whether a name can begin with c: not like an option, nor
// like a hidden file.
func isFirstRune(c byte) bool { return c != '-' && c != '.' }

// isNameRune tells whether a name can hold r.
func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.", r)
}

func notNameRune(r rune) bool { return !isNameRune(r) }
