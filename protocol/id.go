// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// An ID is the id of a JSON-RPC request, or a progress token: a string or a
// number, kept as canonical JSON text. IDs are comparable; the zero ID stands
// for none, which is what notifications have.
type ID struct{ text string }

// NumberID returns the ID of n.
func NumberID(n uint64) ID { return ID{strconv.FormatUint(n, 10)} }

// StringID returns the ID of the string s.
func StringID(s string) ID {
	text, _ := jsontext.AppendQuote(nil, s) // invalid UTF-8 is replaced, never refused
	return ID{string(text)}
}

// ParseID reads an id from its JSON text. Strings that are written differently
// but mean the same give the same ID; of a number the text is kept. It returns
// an error for anything that is neither a string nor a number; null gives the
// zero ID.
func ParseID(raw Raw) (ID, error) {
	switch jsontext.Value(raw).Kind() {
	case 'n':
		return ID{}, nil
	case '0':
		return ID{string(raw)}, nil
	case '"':
		s, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return ID{}, fmt.Errorf("reading an id: %w", err)
		}
		return StringID(string(s)), nil
	}
	return ID{}, fmt.Errorf("an id must be a string or a number, not %.40q", raw)
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Raw returns the id as JSON text, null for the zero ID.
func (id ID) Raw() Raw {
	if id.text == "" {
		return Raw("null")
	}
	return Raw(id.text)
}

// Number returns the id as an unsigned integer, if it is one; 5.0 is.
func (id ID) Number() (uint64, bool) {
	if n, err := strconv.ParseUint(id.text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(id.text, 64)
	if err != nil || f < 0 || f >= 1<<53 || f != math.Trunc(f) {
		return 0, false
	}
	return uint64(f), true
}

// String returns the id's JSON text, for messages and logs.
func (id ID) String() string { return string(id.Raw()) }
