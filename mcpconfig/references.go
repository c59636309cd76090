// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// referenceKind is what a reference refers to.
type referenceKind uint8

const (
	variableReference referenceKind = iota // ${NAME}, ${NAME:-default}, ${env:NAME}
	secretReference                        // vault:KEY as the whole text, ${vault:KEY} in it
	storeReference                         // STORE:KEY as the whole text, ${STORE:KEY} in it
	nestedReference                        // ${NAME:-default} with a reference in the default
	brokenReference                        // looks like a reference, and stays as text
)

// reference is one reference in a text. Its name is that of the variable, KEY of a secret of the
// vault and STORE:KEY of another; of a broken one it is the form, without anything that may be
// secret.
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
	foreign = regexp.MustCompile(`^(env|vault|vaultfile|input|file|command|config|value|op|userInput):`)
	// bare is a text that is nothing but a variable in the shell's short form.
	bare = regexp.MustCompile(`^\$[A-Z][A-Z0-9_]+$`)
	// vaultKey is the name of a key of the vault.
	vaultKey = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
	// likelyWord is what may be meant as the beginning of a reference.
	likelyWord = regexp.MustCompile(`^[a-zA-Z]{4,}$`)
	// storeKey is a key of another store, with the store.
	storeKey = regexp.MustCompile(`^[a-z][a-z0-9_-]*:[\pL\pM\pN\pP\pS ]+$`)
)

// valid reports whether the key of a secret can be one.
func (r reference) valid() bool {
	if r.kind == storeReference {
		return storeKey.MatchString(r.name)
	}
	return vaultKey.MatchString(r.name)
}

// references returns the references in a text, in order. Where whole is set, vault:KEY as the
// whole text is one, and so is STORE:KEY for each of the stores. A $${ is a literal ${. What a
// shell would expand, such as ${a%b}, is text for the child and no reference.
func references(text string, whole bool, stores []string) []reference {
	secret, isSecret := secretOf(text, stores)
	switch {
	case isSecret && whole:
		return []reference{secret}
	case whole && misspelt(text, stores) != "":
		return []reference{{brokenReference, misspelt(text, stores) + ":…"}}
	case isSecret && secret.valid() && !strings.Contains(text, "${"):
		prefix, _, _ := strings.Cut(text, ":")
		return []reference{{brokenReference, prefix + ":…"}}
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
		r, ok := classify(inner, closed, stores)
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
func classify(inner string, closed bool, stores []string) (reference, bool) {
	secret, isSecret := secretOf(inner, stores)
	hasDefault := fallback.MatchString(inner) && !strings.HasPrefix(inner, "env:")
	switch {
	case closed && isSecret:
		return secret, true
	case closed && hasDefault && strings.Contains(inner, "${"):
		name, _, _ := strings.Cut(inner, ":-")
		return reference{nestedReference, name}, true
	case closed && (hasDefault || variable.MatchString(inner)):
		return reference{variableReference, inner}, true
	case foreign.MatchString(inner):
		return reference{brokenReference, "${" + foreign.FindString(inner) + "…"}, true
	case closed && misspelt(inner, stores) != "":
		return reference{brokenReference, "${" + misspelt(inner, stores) + ":…"}, true
	case !closed && (hasDefault || variable.MatchString(inner)):
		return reference{brokenReference, "${…"}, true
	}
	return reference{}, false
}

// secretOf returns the reference that a text is as a whole, if it is one to a secret.
func secretOf(text string, stores []string) (reference, bool) {
	if key, ok := strings.CutPrefix(text, "vault:"); ok {
		return reference{secretReference, key}, !strings.HasPrefix(key, "-")
	}
	for _, store := range stores {
		if strings.HasPrefix(text, store+":") && !strings.HasPrefix(text, store+":-") {
			return reference{storeReference, text}, true
		}
	}
	return reference{}, false
}

// misspelt returns the word with which a text begins that is nearly that of a reference to a
// secret: vualt:KEY. It is "" for any other text.
func misspelt(text string, stores []string) string {
	word, key, found := strings.Cut(text[:min(len(text), 200)], ":")
	known := append([]string{"vault", "vaultfile"}, stores...)
	if found && likelyWord.MatchString(word) && vaultKey.MatchString(key) && !slices.Contains(known, word) &&
		Nearest(word, known) != "" {
		return word
	}
	return ""
}

// fileSecret returns the reference to the secret in vaultfile:KEY, the path of a file as a value
// of env; any other text stays.
func fileSecret(text string, stores []string) string {
	key, ok := strings.CutPrefix(text, "vaultfile:")
	if !ok {
		return text
	}
	if _, inStore := secretOf(key, stores); inStore && !strings.HasPrefix(key, "vault:") {
		return key
	}
	return "vault:" + key
}

// indexPath returns the path of an item of a list.
func indexPath(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }
