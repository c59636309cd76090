// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/garraia/garra/internal/advice"
)

const (
	// secretPrefix marks a value that is a reference to a secret as a whole.
	secretPrefix = "vault:"
	// filePrefix marks a value of env that is the path of a file with a secret.
	filePrefix = "vaultfile:"
)

// A Template is a field's text, taken apart into literals and references.
// The zero Template is the empty text.
type Template struct {
	parts []part
}

type partKind uint8

const (
	literalPart partKind = iota
	variablePart
	secretPart
)

// part is a piece of a template.
type part struct {
	kind       partKind
	text       string // literal text, a variable's name, or a secret's key
	fallback   string
	defaulting bool // fallback stands for a variable that is unset or empty
}

// ParseTemplate reads the references in text:
//
//	${NAME}            the variable; an error when it is not set
//	${env:NAME}        the same
//	${NAME:-default}   the default when the variable is unset or empty
//	${vault:KEY}       a secret of the vault
//	${STORE:KEY}       a secret of one of the stores
//	$${                the two characters "${"
//
// A NAME is [A-Za-z_][A-Za-z0-9_]*, a KEY of the vault is [A-Za-z0-9_.-]+, one of
// another store is any text without control characters, a default is literal and
// ends at the first "}". Everything else that follows a "$" stands for itself,
// like ${a%b}. The error, an [*Error] of kind [ErrInvalid], is for a malformed
// KEY, and for a reference within a default, which would otherwise be silently
// cut in two.
func ParseTemplate(text string, stores []string) (Template, error) {
	return parseTemplate(text, func(body string) (part, bool, error) {
		if p, ok, err := parseSecret(body, stores); ok {
			return p, true, err
		}
		return parseVariable(body)
	})
}

// ParseValue reads text as [ParseTemplate] does; besides, a text "vault:KEY" or
// "STORE:KEY" as a whole is a secret.
func ParseValue(text string, stores []string) (Template, error) {
	if p, ok, err := parseSecret(text, stores); ok {
		return Template{parts: []part{p}}, err
	}
	return ParseTemplate(text, stores)
}

// parseFileValue reads a value of an env file, in which only references to
// secrets mean something.
func parseFileValue(text string, stores []string) (Template, error) {
	secret := func(body string) (part, bool, error) { return parseSecret(body, stores) }
	if p, ok, err := secret(text); ok {
		return Template{parts: []part{p}}, err
	}
	return parseTemplate(text, secret)
}

// referenceParser reads what stands between "${" and "}". It returns false
// when that is no reference.
type referenceParser func(body string) (part, bool, error)

func parseTemplate(text string, parse referenceParser) (Template, error) {
	var t Template
	var literal strings.Builder
	end := -1 // the first "}" after a "${", looked for once
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], "$${") {
			literal.WriteString("${")
			i += len("$${")
			continue
		}
		if strings.HasPrefix(text[i:], "${") {
			if end < i {
				end = indexFrom(text, '}', i)
			}
			p, ok, err := parseClosed(text, i+len("${"), end, parse)
			if err != nil {
				return Template{}, err
			}
			if ok {
				t.addLiteral(&literal)
				t.parts = append(t.parts, p)
				i = end + 1
				continue
			}
		}
		literal.WriteByte(text[i])
		i++
	}
	t.addLiteral(&literal)
	return t, nil
}

// parseClosed parses a reference if there is a "}" at end.
func parseClosed(text string, start, end int, parse referenceParser) (part, bool, error) {
	if end == len(text) {
		return part{}, false, nil
	}
	return parse(text[start:end])
}

// indexFrom returns the index of the first c at or after start, else the length.
func indexFrom(text string, c byte, start int) int {
	if i := strings.IndexByte(text[start:], c); i >= 0 {
		return start + i
	}
	return len(text)
}

// addLiteral moves the text so far into a part of its own.
func (t *Template) addLiteral(text *strings.Builder) {
	if text.Len() > 0 {
		t.parts = append(t.parts, part{kind: literalPart, text: text.String()})
		text.Reset()
	}
}

// parseVariable reads a reference to a variable.
func parseVariable(body string) (part, bool, error) {
	if name, ok := strings.CutPrefix(body, "env:"); ok {
		return part{kind: variablePart, text: name}, isVariable(name), nil
	}
	name := body[:len(body)-len(strings.TrimLeftFunc(body, isWordRune))]
	if !isVariable(name) {
		return part{}, false, nil
	}
	fallback, defaulting := strings.CutPrefix(body[len(name):], ":-")
	switch {
	case !defaulting && name != body:
		return part{}, false, nil
	case !defaulting:
		return part{kind: variablePart, text: name}, true, nil
	case strings.Contains(fallback, "${"):
		return part{}, true, &Error{
			Kind: ErrInvalid, Subject: name,
			Message: fmt.Sprintf("the default of variable %q holds another reference", name),
			Fix:     "give a literal default",
		}
	}
	return part{kind: variablePart, text: name, fallback: fallback, defaulting: true}, true, nil
}

// parseSecret reads a reference to a secret. Its part names one of the vault by
// its KEY, any other as STORE:KEY.
func parseSecret(body string, stores []string) (part, bool, error) {
	prefix, ok := storeOf(body, stores)
	if !ok {
		return part{}, false, nil
	}
	ofVault, key := prefix+":" == secretPrefix, body[len(prefix)+1:]
	fits := isKeyRune
	if !ofVault {
		fits = unicode.IsPrint
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !fits(r) }) {
		return part{}, true, keyError(prefix, key)
	}
	if !ofVault {
		key = body
	}
	return part{kind: secretPart, text: key}, true, nil
}

// storeOf returns the store that a reference begins with, "vault" for the vault. It
// looks at the beginning alone, so that parsing takes linear time.
func storeOf(body string, stores []string) (store string, ok bool) {
	begins := func(store string) bool {
		rest, found := strings.CutPrefix(body, store)
		return found && strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, ":-")
	}
	if vault := strings.TrimSuffix(secretPrefix, ":"); begins(vault) {
		return vault, true
	}
	if i := slices.IndexFunc(stores, begins); i >= 0 {
		return stores[i], true
	}
	return "", false
}

func keyError(prefix, key string) *Error {
	e := &Error{
		Kind: ErrInvalid, Subject: key,
		Message: fmt.Sprintf("%q is not the name of a secret", key),
		Fix:     fmt.Sprintf("write %s:KEY with a KEY of printable characters", prefix),
	}
	if prefix+":" == secretPrefix {
		e.Fix = "write vault:KEY with a KEY of letters, digits, \"_\", \".\" and \"-\""
	}
	return e
}

// isKeyRune tells whether r may stand in the KEY of a secret of the vault.
func isKeyRune(r rune) bool { return isWordRune(r) || r == '.' || r == '-' }

// isVariable tells whether name is a NAME of the grammar.
func isVariable(name string) bool {
	if name == "" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) })
}

func isWordRune(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// Variables returns the names that t refers to in garra's environment, in the
// order of the text.
func (t Template) Variables() []string { return t.names(variablePart) }

// SecretKeys returns the secrets that t refers to, in the order of the text: KEY
// for one of the vault, STORE:KEY for any other.
func (t Template) SecretKeys() []string { return t.names(secretPart) }

func (t Template) names(kind partKind) []string {
	var names []string
	for _, p := range t.parts {
		if p.kind == kind {
			names = append(names, p.text)
		}
	}
	return names
}

// Expand puts the text together. variable returns a variable's value and
// whether it is set; secret returns a secret. It is called for every reference
// even after a failure, and the error is an [Errors] with all problems: of kind
// [ErrUnset] without a value, of kind [ErrSecret] around what secret returned.
func (t Template) Expand(
	variable func(name string) (string, bool), secret func(key string) (string, error),
) (string, error) {
	var text strings.Builder
	var problems Errors
	for _, p := range t.parts {
		value, problem := p.expand(variable, secret)
		if problem != nil {
			problems = append(problems, problem)
		}
		text.WriteString(value)
	}
	if len(problems) > 0 {
		return "", problems
	}
	return text.String(), nil
}

// Expand resolves the references in a value of a server's entry, as [ParseValue]
// reads it. Without secrets, any reference to one is an error. Errors are those of
// [ParseValue] and [Template.Expand].
func Expand(
	ctx context.Context, server, text string, variable func(name string) (string, bool), secrets Secrets,
) (string, error) {
	var stores []string
	if secrets != nil {
		stores = secrets.Stores()
	}
	t, err := ParseValue(text, stores)
	if err != nil {
		return "", err
	}
	return t.Expand(variable, func(key string) (string, error) {
		if secrets == nil {
			return "", errNoVault
		}
		return secrets.Secret(ctx, server, key)
	})
}

func (p part) expand(
	variable func(string) (string, bool), secret func(string) (string, error),
) (string, *Error) {
	switch p.kind {
	case variablePart:
		value, set := variable(p.text)
		switch {
		case p.defaulting && value == "":
			return p.fallback, nil
		case !set:
			return "", unsetError(p.text)
		}
		return value, nil
	case secretPart:
		value, err := secret(p.text)
		if err != nil {
			return "", secretError(p.text, err)
		}
		return value, nil
	default:
		return p.text, nil
	}
}

func unsetError(name string) *Error {
	return &Error{
		Kind: ErrUnset, Subject: name,
		Message: fmt.Sprintf("variable %q is not set in garra's environment", name),
		Fix:     fmt.Sprintf("set it where garra is started, or write ${%s:-default}", name),
	}
}

func secretError(key string, cause error) *Error {
	fix := "open the vault, or store the secret in it"
	advised, ok := advice.Of(cause)
	switch {
	case errors.Is(cause, errNoVault):
		fix = "make one with `garra vault init`, or write ${env:NAME} and set NAME where garra is started"
	case errors.Is(cause, errSecretPlace):
		fix = "hand it over in env"
	case ok:
		fix = advised
	}
	return &Error{
		Kind: ErrSecret, Subject: key, Cause: cause,
		Message: fmt.Sprintf("secret %q is not available", key),
		Fix:     fix,
	}
}
