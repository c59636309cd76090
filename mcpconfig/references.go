// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"regexp"
	"strconv"
	"strings"
)

// referenceKind is what a reference refers to.
type referenceKind uint8

const (
	variableReference referenceKind = iota // ${NAME}, ${NAME:-default}, ${env:NAME}
	vaultReference                         // vault:KEY as the whole text, ${vault:KEY} in it
	nestedReference                        // ${NAME:-default} with a reference in the default
	brokenReference                        // looks like a reference, and stays as text
)

// reference is one reference in a text. Its name is that of the key or variable; of a broken
// one it is the form, without anything that may be secret.
type reference struct {
	kind referenceKind
	name string
}

var (
	// variable is what may stand in ${…} for a variable of garra's environment.
	variable = regexp.MustCompile(`^(env:)?[A-Za-z_][A-Za-z0-9_]*$`)
	// fallback is a variable with a default.
	fallback = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*:-`)
	// foreign starts what other clients expand in ${…}, and slips in garra's own forms.
	foreign = regexp.MustCompile(`^(env|vault|input|file|command|config|value|op|userInput):`)
	// bare is a text that is nothing but a variable in the shell's short form.
	bare = regexp.MustCompile(`^\$[A-Z][A-Z0-9_]+$`)
	// vaultKey is the name of a key of the vault.
	vaultKey = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// references returns the references in a text, in order. Where whole is set, vault:KEY as the
// whole text is one. A $${ is a literal ${. What a shell would expand, such as ${a%b}, is text
// for the child and no reference.
func references(text string, whole bool) []reference {
	key, isVault := strings.CutPrefix(text, "vault:")
	switch {
	case isVault && whole:
		return []reference{{vaultReference, key}}
	case isVault && vaultKey.MatchString(key):
		return []reference{{brokenReference, "vault:…"}}
	case bare.MatchString(text):
		return []reference{{brokenReference, "$NAME"}}
	}
	var found []reference
	for i := strings.Index(text, "${"); i >= 0; i = strings.Index(text, "${") {
		escaped := strings.HasSuffix(text[:i], "$")
		text = text[i+len("${"):]
		if escaped {
			continue
		}
		inner, rest, closed := strings.Cut(text, "}")
		r, ok := classify(inner, closed)
		if ok {
			found = append(found, r)
		}
		if ok && r.kind != brokenReference {
			text = rest
		}
	}
	return found
}

// classify returns the reference that stands between ${ and }, if it is one or looks like one.
func classify(inner string, closed bool) (reference, bool) {
	key, isVault := strings.CutPrefix(inner, "vault:")
	hasDefault := fallback.MatchString(inner) && !strings.HasPrefix(inner, "env:")
	switch {
	case closed && isVault:
		return reference{vaultReference, key}, true
	case closed && hasDefault && strings.Contains(inner, "${"):
		name, _, _ := strings.Cut(inner, ":-")
		return reference{nestedReference, name}, true
	case closed && (hasDefault || variable.MatchString(inner)):
		return reference{variableReference, inner}, true
	case foreign.MatchString(inner):
		return reference{brokenReference, "${" + foreign.FindString(inner) + "…"}, true
	case !closed && (hasDefault || variable.MatchString(inner)):
		return reference{brokenReference, "${…"}, true
	}
	return reference{}, false
}

// indexPath returns the path of an item of a list.
func indexPath(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }
