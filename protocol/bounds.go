// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"fmt"
)

// Bounds of what a text is split into: a value of two bytes takes a hundred once
// it is apart, so that the length of a frame alone bounds little.
const (
	// MaxElements is how many elements an array may have that is split.
	MaxElements = 50_000
	maxMembers  = 10_000  // of an object that is split
	maxValues   = 1 << 20 // of a whole message from a client, all of whose names are compared
)

// A CrowdedError is returned for JSON that has more parts than anybody needs.
type CrowdedError struct {
	What  string // "members", "elements", "values"
	Limit int
}

// Error implements error.
func (e *CrowdedError) Error() string { return fmt.Sprintf("more than %d %s", e.Limit, e.What) }

// uncrowded refuses a text of more than maxValues values. It is lenient: text
// that is no JSON passes or not.
func uncrowded(text []byte) error {
	if len(text) <= maxValues {
		return nil
	}
	commas := 0
	for len(text) > 0 {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			quote = len(text)
		}
		if commas += bytes.Count(text[:quote], []byte(",")); commas > maxValues {
			return &CrowdedError{"values", maxValues}
		}
		text = afterString(text[quote:])
	}
	return nil
}

// afterString returns what follows the string that text begins with.
func afterString(text []byte) []byte {
	for i := 1; i < len(text); {
		end := bytes.IndexAny(text[i:min(len(text), i+64)], `"\`)
		switch {
		case end < 0:
			i += 64
		case text[i+end] == '"':
			return text[i+end+1:]
		default:
			i += end + 2 // what follows a backslash is of the string
		}
	}
	return nil
}
