// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"fmt"
	"strings"
)

// secretPrefix marks a value that is a reference to a secret as a whole.
const secretPrefix = "vault:"

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
//	${vault:KEY}       a secret
//	$${                the two characters "${"
//
// A NAME is [A-Za-z_][A-Za-z0-9_]*, a KEY is [A-Za-z0-9_.-]+, a default is
// literal and ends at the first "}". Everything else that follows a "$" stands
// for itself, like ${a%b}. The error, an [*Error] of kind [ErrInvalid], is for a
// malformed KEY, and for a reference within a default, which would otherwise
// be silently cut in two.
func ParseTemplate(text string) (Template, error) {
	return parseTemplate(text, parseReference)
}

// ParseValue reads text as [ParseTemplate] does; besides, a text "vault:KEY" as
// a whole is a secret.
func ParseValue(text string) (Template, error) {
	if key, ok := strings.CutPrefix(text, secretPrefix); ok {
		p, err := parseSecret(key)
		return Template{parts: []part{p}}, err
	}
	return ParseTemplate(text)
}

// parseFileValue reads a value of an env file, in which only references to
// secrets mean something.
func parseFileValue(text string) (Template, error) {
	if strings.HasPrefix(text, secretPrefix) {
		return ParseValue(text)
	}
	return parseTemplate(text, func(body string) (part, bool, error) {
		if key, ok := strings.CutPrefix(body, secretPrefix); ok {
			p, err := parseSecret(key)
			return p, true, err
		}
		return part{}, false, nil
	})
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

func parseReference(body string) (part, bool, error) {
	if key, ok := strings.CutPrefix(body, secretPrefix); ok {
		p, err := parseSecret(key)
		return p, true, err
	}
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

func parseSecret(key string) (part, error) {
	valid := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !isWordRune(r) && r != '.' && r != '-'
	})
	if !valid {
		return part{}, &Error{
			Kind: ErrInvalid, Subject: key,
			Message: fmt.Sprintf("%q is not the name of a secret", key),
			Fix:     "write vault:KEY with a KEY of letters, digits, \"_\", \".\" and \"-\"",
		}
	}
	return part{kind: secretPart, text: key}, nil
}

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

// SecretKeys returns the keys of the secrets that t refers to, in the order of
// the text.
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
	switch {
	case errors.Is(cause, errNoVault):
		fix = "write ${env:NAME} in env instead, and set NAME where garra is started"
	case errors.Is(cause, errSecretPlace):
		fix = "hand it over in env"
	}
	return &Error{
		Kind: ErrSecret, Subject: key, Cause: cause,
		Message: fmt.Sprintf("secret %q is not available", key),
		Fix:     fix,
	}
}
