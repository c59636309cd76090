// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// How much longer text can become: a byte at most as \u00xx, and what stands
// around an entry.
const (
	quoteGrowth = 6
	itemFrame   = 256
)

// encode returns the text of a file: indented, so that people can read what
// age -d prints. The slice has room for all from the beginning, so that growing
// leaves no copies of values behind, and the caller wipes it.
func (c *contents) encode() ([]byte, error) {
	b := make([]byte, 0, c.maxLen())
	b = append(b, "{\n  \"garra_vault\": "...)
	b = strconv.AppendInt(b, formatVersion, 10)
	b = appendText(append(b, ",\n  \"id\": "...), c.id)
	b = append(b, ",\n  \"generation\": "...)
	b = strconv.AppendUint(b, c.generation, 10)
	b = append(b, ",\n  \"entries\": {"...)
	before := "\n    "
	for _, name := range slices.Sorted(maps.Keys(c.entries)) {
		b = append(appendText(append(b, before...), name), ": "...)
		before = ",\n    "
		var err error
		if b, err = c.entries[name].encode(b); err != nil {
			clear(b)
			return nil, err
		}
	}
	b = append(b, "\n  }"...)
	b = appendMembers(b, ",\n  ", c.unknown)
	return append(b, "\n}\n"...), nil
}

// maxLen returns a length that the text doesn't exceed.
func (c *contents) maxLen() int {
	n := itemFrame + quoteGrowth*len(c.id) + len(c.unknown)
	for name, i := range c.entries {
		n += itemFrame + quoteGrowth*(len(name)+i.value.size()) + len(i.unknown)
		for _, server := range i.servers {
			n += itemFrame + len(server)
		}
	}
	return n
}

// encode appends an entry.
func (i *item) encode(b []byte) ([]byte, error) {
	b = append(b, `{"value": `...)
	err := i.value.Use(func(value []byte) error {
		b = appendValue(b, value)
		return nil
	})
	if !i.setAt.IsZero() {
		b = appendText(append(b, `, "set_at": `...), i.setAt.Format(time.RFC3339Nano))
	}
	before := `, "for": [`
	for _, server := range i.servers {
		b = appendText(append(b, before...), server)
		before = ", "
	}
	if len(i.servers) > 0 {
		b = append(b, ']')
	}
	if i.policy != PolicyDefault {
		b = appendText(append(b, `, "policy": `...), string(i.policy))
	}
	return append(appendMembers(b, ", ", i.unknown), '}'), err
}

// appendValue appends a text as it is, and what is not UTF-8 as base64.
func appendValue(b, value []byte) []byte {
	if utf8.Valid(value) {
		return appendText(b, value)
	}
	b = base64.StdEncoding.AppendEncode(append(b, `{"base64": "`...), value)
	return append(b, `"}`...)
}

// appendText appends a JSON string. Names and texts that come here are UTF-8,
// which is all that quoting could fail for.
func appendText[T []byte | string](b []byte, text T) []byte {
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

// appendMembers appends the members of an object, the first after a separator.
func appendMembers(b []byte, separator string, object jsontext.Value) []byte {
	inner := bytes.TrimSpace(object)
	inner = bytes.TrimSuffix(bytes.TrimPrefix(inner, []byte("{")), []byte("}"))
	if inner = bytes.TrimSpace(inner); len(inner) > 0 {
		b = append(append(b, separator...), inner...)
	}
	return b
}
