// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/garraia/garra/internal/sensitive"
)

// A collector gathers the patterns of secrets.
type collector struct {
	patterns []pattern
	owners   []*owner
	index    map[string]int // of patterns, by their text
}

// add takes all forms of a value.
func (c *collector) add(v Value) {
	o := &owner{name: v.Name, block: v.Policy == Block}
	c.owners = append(c.owners, o)
	for _, text := range texts(v.Text) {
		if isCommon(text) {
			continue
		}
		c.addSpellings(o, text)
		c.addEncodings(o, text)
	}
}

// addSpellings takes a text as it is, as forms have it, where a blank is a plus,
// and as it reads when what looks like an escape in it is undone: undoing the
// escapes of an encoder undoes these as well.
func (c *collector) addSpellings(o *owner, text string) {
	for range depth + 1 {
		if isCommon(text) {
			return
		}
		c.addPattern(o, text)
		if strings.Contains(text, " ") {
			c.addPattern(o, strings.ReplaceAll(text, " ", "+"))
		}
		plain := undone(text)
		if plain == text {
			return
		}
		text = plain
	}
}

// addEncodings takes a text in hexadecimal digits and in base64.
func (c *collector) addEncodings(o *owner, text string) {
	digits := hex.EncodeToString([]byte(text))
	encoded := []string{digits, strings.ToUpper(digits)}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			encoded = append(encoded, aligned(alphabet, text, before))
		}
	}
	for _, e := range encoded {
		if len(e) >= minLength {
			c.addPattern(o, e)
		}
	}
}

// aligned returns the digits of base64 that text alone determines when so many
// bytes stand before it. Six bits are a digit, so the first ones may belong to
// these bytes in part, and the last one to what follows.
func aligned(alphabet *base64.Encoding, text string, before int) string {
	encoded := alphabet.EncodeToString([]byte("\x00\x00\x00"[:before] + text))
	return encoded[(before*8+5)/6 : (before+len(text))*8/6]
}

// addPattern takes one text to look for.
func (c *collector) addPattern(o *owner, text string) {
	if len(text) < minWord {
		return
	}
	word := len(text) < minLength
	if i, known := c.index[text]; known {
		p := &c.patterns[i]
		p.owner.block = p.owner.block || o.block
		return
	}
	c.index[text] = len(c.patterns)
	c.patterns = append(c.patterns, pattern{text: text, word: word, owner: o})
}

// texts returns what a value is looked for as: whole, without the blanks around
// it, each line that is long enough, and those parts that are secrets of their
// own.
func texts(text string) []string {
	trimmed := strings.TrimSpace(text)
	all := append([]string{text, trimmed}, lines(trimmed)...)
	return append(all, parts(trimmed)...)
}

// lines returns the lines of a text that has several and is not JSON, of which
// parts knows what is secret. Line ends may be escaped, as they often are in
// variables. Those around a key in PEM (RFC 7468) are the same for all keys.
func lines(text string) []string {
	if !strings.Contains(text, "\n") {
		text = undone(text)
	}
	if !strings.Contains(text, "\n") || json.Valid([]byte(text)) {
		return nil
	}
	var long []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) >= minLine && !strings.HasPrefix(line, "-----") {
			long = append(long, line)
		}
	}
	return long
}

// parts returns the secrets inside a secret: the password of a URL or of the
// settings of a database, the token of an Authorization header, and what is
// secret in an object of JSON, such as the key of a service account.
func parts(text string) []string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			return []string{password}
		}
	}
	if scheme, rest, ok := strings.Cut(text, " "); ok {
		switch rest = strings.TrimSpace(rest); strings.ToLower(scheme) {
		case "bearer", "token":
			return []string{rest}
		case "basic":
			return append(basicPassword(rest), rest)
		}
	}
	var object map[string]any
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &object) == nil {
		return leaves(object, nil)
	}
	return settings(text)
}

// basicPassword returns the password in the credentials of RFC 7617.
func basicPassword(credentials string) []string {
	plain, err := base64.StdEncoding.DecodeString(credentials)
	_, password, ok := strings.Cut(string(plain), ":")
	if err != nil || !ok {
		return nil
	}
	return []string{password}
}

// settings returns the passwords in a list of names and values, which blanks or
// semicolons separate.
func settings(text string) []string {
	var passwords []string
	separates := func(r rune) bool { return r == ' ' || r == ';' }
	for setting := range strings.FieldsFuncSeq(text, separates) {
		name, value, _ := strings.Cut(setting, "=")
		switch strings.ToLower(name) {
		case "password", "pwd", "accountkey", "sharedaccesskey":
			passwords = append(passwords, strings.Trim(value, `'"`))
		}
	}
	return passwords
}

// leaves adds to found the secrets in an object of JSON.
func leaves(object map[string]any, found []string) []string {
	for name, value := range object {
		switch value := value.(type) {
		case string:
			if _, ok := sensitive.Pair(name, value); ok && len(value) >= minLength {
				found = append(found, value, strings.TrimSpace(value))
				found = append(found, lines(value)...)
			}
		case map[string]any:
			found = leaves(value, found)
		}
	}
	return found
}
