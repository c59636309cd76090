// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"
)

// An Edit is a vault in the middle of [Vault.Update]: it shows the newest
// contents with the changes made so far. It is for one goroutine, and for
// nothing once the function that got it returns.
type Edit struct {
	base    *contents
	entries map[string]*item // what will be; items of base are never changed
	now     time.Time
}

func newEdit(base *contents, now time.Time) *Edit {
	return &Edit{base: base, entries: maps.Clone(base.entries), now: now}
}

// Entries returns what the vault holds, sorted by name.
func (e *Edit) Entries() []Entry { return e.result().all() }

// Entry returns what is said of one value; ok is false when there is none.
func (e *Edit) Entry(name string) (entry Entry, ok bool) {
	i, ok := e.entries[name]
	if !ok {
		return Entry{}, false
	}
	return i.entry(name), true
}

// Value returns one value, or [ErrNoKey].
func (e *Edit) Value(name string) (*Secret, error) {
	i, err := find(e.entries, name)
	if err != nil {
		return nil, err
	}
	return i.value, nil
}

// Set stores a value. An entry that is there keeps with whom it is shared and its
// policy; and all of it when the value is the same. It returns [ErrBadName].
func (e *Edit) Set(name string, value *Secret) error {
	if err := CheckName(name); err != nil {
		return err
	}
	next := item{}
	if old, ok := e.entries[name]; ok {
		if old.value.Equal(value) {
			return nil
		}
		next = *old
	}
	next.value, next.setAt = value, e.now
	e.entries[name] = &next
	return nil
}

// Delete removes an entry, or returns [ErrNoKey].
func (e *Edit) Delete(name string) error {
	if _, err := find(e.entries, name); err != nil {
		return err
	}
	delete(e.entries, name)
	return nil
}

// Share says which servers may use a value beside its owner, instead of those
// that it was shared with. It returns [ErrNoKey] or [ErrBadName].
func (e *Edit) Share(name string, servers []string) error {
	for _, server := range servers {
		if err := checkServer(server); err != nil {
			return err
		}
	}
	return e.change(name, func(i *item) {
		i.servers = slices.Compact(slices.Sorted(slices.Values(servers)))
	})
}

// SetPolicy says what is done with a value where it leaves. It returns
// [ErrNoKey], or an error for a policy that there isn't.
func (e *Edit) SetPolicy(name string, p Policy) error {
	if !p.valid() {
		return fmt.Errorf("setting a policy: %.50q is neither %q nor %q", string(p), PolicyRedact, PolicyBlock)
	}
	return e.change(name, func(i *item) { i.policy = p })
}

// RemoveServer removes a server's own keys, and returns their names, sorted. Keys
// of the server "a.b" are none of the server "a".
func (e *Edit) RemoveServer(server string) []string {
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(e.entries)) {
		if owner, _, ok := Owner(name); ok && owner == server {
			removed = append(removed, name)
			delete(e.entries, name)
		}
	}
	return removed
}

// change puts a changed copy in the place of an item.
func (e *Edit) change(name string, change func(*item)) error {
	old, err := find(e.entries, name)
	if err != nil {
		return err
	}
	next := *old
	change(&next)
	e.entries[name] = &next
	return nil
}

// result returns the contents after the edit, of the generation before it.
func (e *Edit) result() *contents {
	return &contents{id: e.base.id, generation: e.base.generation, entries: e.entries, unknown: e.base.unknown}
}

// changed tells whether anything is other than it was.
func (e *Edit) changed() bool {
	return !maps.EqualFunc(e.base.entries, e.entries, func(a, b *item) bool {
		return a == b || a.setAt.Equal(b.setAt) && a.policy == b.policy &&
			slices.Equal(a.servers, b.servers) && bytes.Equal(a.unknown, b.unknown) && a.value.Equal(b.value)
	})
}

// find returns an item, or [ErrNoKey].
func find(entries map[string]*item, name string) (*item, error) {
	if i, ok := entries[name]; ok {
		return i, nil
	}
	return nil, &Error{
		Kind: ErrNoKey, Message: fmt.Sprintf("the vault has no key %.150q", name),
		Fix: "`garra vault list` shows those it has",
	}
}
