// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	storesSection = "secrets"
	// DefaultStoreTimeout is how long the command of a store may take.
	DefaultStoreTimeout = 10 * time.Second
)

// storeName is what a store may be called.
var storeName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// reservedStores returns the words that start something else in a value.
func reservedStores() []string {
	return []string{"vault", "vaultfile", "env", "http", "https", "file", "input"}
}

// readStores reads the section that names stores of secrets. One that is not valid keeps its
// name, so that a reference to it isn't taken for a text.
func (l *loader) readStores(s *source) []Store {
	section := s.root.member(storesSection)
	if section == nil || section.value.kind == nullNode {
		return nil
	}
	if section.value.kind != mapNode {
		l.report(s.at(section.value.start), CodeSectionNotMap, "write it as a map of names and commands",
			"%s is %s, not a map", section.key, section.value.kind.noun())
		return nil
	}
	l.checkSectionKeys(s, section.value, storesSection+".")
	var stores []Store
	for _, m := range section.value.members {
		if m.invalid {
			continue
		}
		store, ok := l.readStore(s, m)
		if store.Invalid = !ok; ok || !slices.Contains(reservedStores(), store.Name) {
			stores = append(stores, store)
		}
	}
	slices.SortFunc(stores, func(a, b Store) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(stores, func(a, b Store) bool { return a.Name == b.Name })
}

// readStore reads one store: a command as a list, or a map.
func (l *loader) readStore(s *source, m member) (Store, bool) {
	store := Store{Name: m.key, Timeout: DefaultStoreTimeout}
	path, errs := storesSection+"."+m.key, l.findings.Count(Error)
	if !storeName.MatchString(m.key) || slices.Contains(reservedStores(), m.key) {
		l.report(s.at(m.keyStart), CodeFieldInvalid, "use lower-case letters, digits, - and _, and none of "+
			strings.Join(reservedStores(), ", "), "a store of secrets can't have the name %q", shorten(m.key))
		return store, false
	}
	switch m.value.kind {
	case listNode:
		l.readStoreCommand(s, path, m.value, &store)
	case mapNode:
		l.readStoreMap(s, path, m.value, &store)
	default:
		l.report(s.at(m.value.start), CodeFieldType, `write its command, such as [op, read, "op:{key}"]`,
			"%s is %s, neither a command nor a map", path, m.value.kind.noun())
	}
	return store, errs == l.findings.Count(Error)
}

// readStoreMap reads a store that is written as a map.
func (l *loader) readStoreMap(s *source, path string, n *node, store *Store) {
	l.checkSectionKeys(s, n, path+".")
	for _, m := range n.members {
		at := path + "." + m.key
		switch m.key {
		case "command":
			l.readStoreCommand(s, at, m.value, store)
		case "keyring":
			if m.value.kind != stringNode || m.value.text == "" {
				l.report(s.at(m.value.start), CodeFieldType, "write the name of a service", "%s is not a string", at)
			}
			store.Keyring = m.value.text
		case "timeout":
			if want := setSeconds(&store.Timeout, m.value, 0.1, 300); want != "" {
				l.report(s.at(m.value.start), CodeFieldRange, "write "+want, "%s is not %s", at, want)
			}
		default:
			l.report(s.at(m.keyStart), CodeKeyUnknown, didYouMean(m.key, []string{"command", "keyring", "timeout"}),
				"unknown key %q in %s", shorten(m.key), path)
		}
	}
	if (len(store.Command) == 0) == (store.Keyring == "") {
		l.report(s.at(n.start), CodeFieldConflict, "give it one of the two",
			"%s needs either a command or a keyring", path)
	}
}

// readStoreCommand reads the command of a store.
func (l *loader) readStoreCommand(s *source, path string, n *node, store *Store) {
	if want := setTexts(&store.Command, n); want != "" || n.kind != listNode || len(n.items) == 0 {
		l.report(s.at(n.start), CodeFieldType, fmt.Sprintf(`write the program and its arguments, such as [%s]`,
			`op, read, "op:{key}"`), "%s is not a list of strings", path)
	}
}
