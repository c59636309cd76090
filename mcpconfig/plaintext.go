// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/garraia/garra/internal/sensitive"
)

// A Plaintext is a value in an entry that seems to be a secret and stands there itself.
type Plaintext struct {
	Field  string // as [Document.SetField] takes it: "env.TOKEN", "args[2]"
	Key    string // what the secret could be called: letters, digits and "_"
	Secret string // what is secret of the value; empty when that can't be told from the rest
	Before string // what stands before it in the value, as written
	After  string // and behind it
	Reason string // why it seems to be one
}

// Plaintext returns what seems to be secret in the values of an entry, in the order of its
// fields. What notSecret names isn't among it, nor is what refers to the secret.
func (s *Server) Plaintext() []Plaintext {
	var found []Plaintext
	add := func(field, key, text string, reason sensitive.Reason, secret bool) {
		if secret && len(references(text, true, nil)) > 0 { // the name speaks of what it refers to
			reason, secret = sensitive.Value(withoutReferences(text))
		}
		if secret && !slices.Contains(s.NotSecret, field) && !slices.Contains(s.NotSecret, key) {
			found = append(found, plaintext(field, keyOf(key), text, string(reason)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		reason, secret := sensitive.Pair(name, s.Env[name])
		add("env."+name, name, s.Env[name], reason, secret)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		reason, secret := sensitive.Header(name, s.Headers[name])
		add("headers."+name, name, s.Headers[name], reason, secret)
	}
	reason, secret := sensitive.Value(s.URL)
	add("url", "URL", s.URL, reason, secret)
	for i, arg := range s.Args {
		reason, secret := sensitive.Argument(s.Args, i)
		add(indexPath("args", i), argumentKey(s.Args, i), arg, reason, secret)
	}
	reason, secret = sensitive.Pair("client_secret", s.OAuth.ClientSecret)
	add("oauth.clientSecret", "CLIENT_SECRET", s.OAuth.ClientSecret, reason, secret)
	return found
}

// plaintext tells what of a text is the secret: the value behind the name in an argument, the
// password in the url of a server, else all of it.
func plaintext(field, key, text, reason string) Plaintext {
	p := Plaintext{Field: field, Key: key, Secret: text, Reason: reason}
	switch {
	case strings.HasPrefix(field, "args["):
		p.Before, p.Secret = cutArgument(text)
	case field == "url":
		p.Before, p.Secret, p.After = cutPassword(text)
	}
	if len(references(p.Secret, true, nil)) > 0 {
		p.Secret = "" // it is made of several, which a person has to sort out
	}
	p.Secret = strings.ReplaceAll(p.Secret, "$${", "${") // as the server would get it
	return p
}

// bracedReference is a reference inside of a value.
var bracedReference = regexp.MustCompile(`\$\{[^}]*\}`)

// withoutReferences returns a text with a letter in the place of each reference.
func withoutReferences(text string) string { return bracedReference.ReplaceAllString(text, "x") }

// cutArgument takes an argument such as --token=x apart.
func cutArgument(text string) (before, secret string) {
	end := strings.IndexAny(text, "=:")
	if end < 0 || !isArgumentName(text[:end]) || strings.HasPrefix(text[end:], "://") {
		return "", text
	}
	secret = strings.TrimLeft(text[end+1:], " ")
	return text[:len(text)-len(secret)], secret
}

// isArgumentName reports whether a text can be the name of a flag, a variable or a header.
func isArgumentName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// cutPassword takes the password out of an address; where it has none, all of the address is
// secret.
func cutPassword(text string) (before, secret, after string) {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return "", text, ""
	}
	user := u.User.String()
	_, password, ok := strings.Cut(user, ":")
	if !ok {
		password = user
	}
	i := strings.Index(text, user+"@")
	if i < 0 || password == "" {
		return "", text, ""
	}
	start := i + len(user) - len(password)
	return text[:start], password, text[start+len(password):]
}

// argumentKey is what the secret in an argument could be called: as the flag that it belongs to.
func argumentKey(args []string, i int) string {
	before, _ := cutArgument(args[i])
	switch {
	case before != "":
		return before
	case i > 0 && strings.HasPrefix(args[i-1], "-"):
		return args[i-1]
	}
	return fmt.Sprintf("ARG_%d", i)
}

// keyOf makes a name of an environment variable of a name.
func keyOf(name string) string {
	key := strings.Map(func(r rune) rune {
		switch {
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			return r
		}
		return '_'
	}, strings.Trim(name, "-=: "))
	if strings.ToUpper(name) != name {
		key = strings.ToUpper(key)
	}
	if key == "" || unicode.IsDigit(rune(key[0])) {
		key = "_" + key
	}
	return key
}

// checkPlaintext reports secrets that stand in the file itself.
func (d *decoder) checkPlaintext() {
	for _, p := range d.server.Plaintext() {
		at := d.server.Position(p.Field)
		d.findings = append(d.findings, Finding{
			Severity: CodeSecretPlaintext.Severity(), Code: CodeSecretPlaintext,
			File: at.File, Line: at.Line, Column: at.Column, Server: d.entry.name,
			Message: fmt.Sprintf("%s seems to hold a secret (%s), which stands in the file itself", p.Field, p.Reason),
			Fix: "move it to the vault with `garra vault import`; if it is none, name it in " +
				fieldOf("notSecret").spelling(d.entry.src.name),
		})
	}
}
