// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	formatVersion = 1
	maxIDLen      = 64
	maxGeneration = 1 << 53 // what every JSON decoder reads exactly
)

// contents is what one vault file holds. It never changes once it is made: an
// edit makes another.
type contents struct {
	id         string // "" in a file made by hand that garra hasn't written yet
	generation uint64
	entries    map[string]*item
	unknown    jsontext.Value // an object of members that this version doesn't know
}

// An item is one entry with its value.
type item struct {
	value   *Secret
	setAt   time.Time
	servers []string
	policy  Policy
	unknown jsontext.Value // as in contents
}

// entry returns what is said of an item.
func (i *item) entry(name string) Entry {
	return Entry{Name: name, SetAt: i.setAt, For: slices.Clone(i.servers), Policy: i.policy}
}

// all returns the entries, sorted by name.
func (c *contents) all() []Entry {
	entries := make([]Entry, 0, len(c.entries))
	for _, name := range slices.Sorted(maps.Keys(c.entries)) {
		entries = append(entries, c.entries[name].entry(name))
	}
	return entries
}

// documentJSON is the text inside the file.
type documentJSON struct {
	Version    int                 `json:"garra_vault"`
	ID         string              `json:"id"`
	Generation uint64              `json:"generation"`
	Entries    map[string]itemJSON `json:"entries"`
	Unknown    jsontext.Value      `json:",embed"`
}

// itemJSON is one entry: an object, or in a file made by hand the value alone.
type itemJSON struct {
	Value   valueJSON      `json:"value"`
	SetAt   time.Time      `json:"set_at"`
	For     []string       `json:"for"`
	Policy  Policy         `json:"policy"`
	Unknown jsontext.Value `json:",embed"`
}

// valueJSON is a value: a text, or an object with the base64 of one that is not
// UTF-8. It is nil until one was read.
type valueJSON []byte

var errForm = errors.New("neither a text nor an object of the documented form")

// UnmarshalJSON implements the interface of the JSON package.
func (i *itemJSON) UnmarshalJSON(raw []byte) error {
	if jsontext.Value(raw).Kind() == '"' {
		return i.Value.UnmarshalJSON(raw)
	}
	type object itemJSON // without this method
	return json.Unmarshal(raw, (*object)(i))
}

// UnmarshalJSON implements the interface of the JSON package. A value becomes no
// string, which could not be wiped.
func (v *valueJSON) UnmarshalJSON(raw []byte) error {
	switch jsontext.Value(raw).Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(make([]byte, 0, len(raw)), raw)
		*v = text
		return err
	case '{':
		var binary struct {
			Base64 *[]byte `json:"base64"`
		}
		if err := json.Unmarshal(raw, &binary, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		if binary.Base64 != nil {
			*v = append(make([]byte, 0, len(*binary.Base64)), *binary.Base64...)
			clear(*binary.Base64)
			return nil
		}
	}
	return errForm
}

// wipe forgets the values.
func (d *documentJSON) wipe() {
	for _, i := range d.Entries {
		clear(i.Value)
	}
}

// decode reads the text inside a file at path. Errors name a place and never
// quote what stands there.
func decode(path string, text []byte) (*contents, error) {
	var d documentJSON
	defer d.wipe()
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &d); err != nil {
		return nil, notVault(path, "what is inside is not the JSON of a vault"+place(err))
	}
	switch {
	case d.Version > formatVersion:
		return nil, &Error{
			Kind: ErrVersion, Path: path, Fix: "use a newer garra",
			Message: fmt.Sprintf("the vault has format %d, and this garra knows %d", d.Version, formatVersion),
		}
	case d.Version != formatVersion:
		return nil, notVault(path, `what is inside has no "garra_vault": 1`)
	case len(d.ID) > maxIDLen || bytes.ContainsFunc([]byte(d.ID), notNameRune):
		return nil, notVault(path, "the id is not valid")
	case d.Generation >= maxGeneration:
		return nil, notVault(path, "the generation is too large")
	}
	c := &contents{id: d.ID, generation: d.Generation, entries: make(map[string]*item), unknown: d.Unknown}
	for name, raw := range d.Entries {
		i, problem, err := raw.item(name)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			return nil, notVault(path, fmt.Sprintf("entry %.150q: %s", name, problem))
		}
		c.entries[name] = i
	}
	return c, nil
}

// item checks an entry and seals its value. problem says what is wrong with it.
func (i *itemJSON) item(name string) (_ *item, problem string, err error) {
	servers := slices.Compact(slices.Sorted(slices.Values(i.For)))
	switch {
	case CheckName(name) != nil:
		return nil, "the name is not valid", nil
	case i.Value == nil:
		return nil, "there is no value", nil
	case slices.ContainsFunc(servers, func(s string) bool { return !isServer(s) }):
		return nil, `"for" holds what is no server's name`, nil
	case !i.Policy.valid():
		return nil, `"policy" is neither "redact" nor "block"`, nil
	}
	value, err := Seal(i.Value)
	return &item{value: value, setAt: i.SetAt, servers: servers, policy: i.Policy, unknown: i.Unknown}, "", err
}

// notVault is the error for a file that opens, and holds something else.
func notVault(path, message string) error {
	return &Error{
		Kind: ErrDamaged, Path: path, Message: message,
		Fix: "look with: age -d " + shellQuote(path) + ", or put a backup in its place",
	}
}

// place says where the JSON of a vault is wrong, as far as err knows.
func place(err error) string {
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok && semantic.JSONPointer != "" {
		return fmt.Sprintf(" (at %.200q)", string(semantic.JSONPointer))
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return fmt.Sprintf(" (at byte %d)", syntax.ByteOffset)
	}
	return ""
}
