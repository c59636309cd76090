// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Policy says what becomes of a message in which a secret is found.
type Policy string

const (
	// Redact puts a marker in the place of the secret. The zero value does too.
	Redact Policy = "redact"
	// Block asks for the whole message to be kept back; see [Found.Blocked].
	Block Policy = "block"
)

// A Value is a secret to take out.
type Value struct {
	Name   string // what is shown instead: [redacted:Name]
	Text   string
	Policy Policy
}

// A Set is what is taken out at the moment. The zero Set is empty, and finding
// that out is all that it costs then. A Set is safe for concurrent use and must
// not be copied.
type Set struct {
	current atomic.Pointer[automaton] // nil when nothing is held

	mu   sync.Mutex // guards what follows
	held []*hold    // in the order of Hold
}

// A hold is the values that one call of Hold asked for.
type hold struct{ values []Value }

// Hold adds values until release is called, which may be done more than once. A
// value that several have asked for stays until all have released it. A text
// that has several names is shown by the one that was held first, and blocks if
// any of its holders wants that. Values that are too short or too common are
// left out, see [Weak].
//
// Both Hold and release make a new automaton, which takes a few milliseconds for
// a hundred values of usual length, and about 300 bytes of memory for each byte
// of a secret. They return when it is in force.
func (s *Set) Hold(values []Value) (release func()) {
	h := &hold{values: slices.Clone(values)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, h)
	s.rebuildLocked()
	return sync.OnceFunc(func() { s.release(h) })
}

func (s *Set) release(h *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(other *hold) bool { return other == h })
	s.rebuildLocked()
}

func (s *Set) rebuildLocked() {
	var values []Value
	index := make(map[string]int) // in values, by text
	for _, h := range s.held {
		for _, v := range h.values {
			if i, known := index[v.Text]; !known {
				index[v.Text] = len(values)
				values = append(values, v)
			} else if v.Policy == Block {
				values[i].Policy = Block
			}
		}
	}
	s.current.Store(automatonOf(values))
}

// automatonOf returns what finds all forms of the values, nil when there is
// nothing to find.
func automatonOf(values []Value) *automaton {
	c := collector{index: make(map[string]int)}
	for _, v := range values {
		c.add(v)
	}
	if len(c.patterns) == 0 {
		return nil
	}
	a := compile(c.patterns)
	for _, o := range c.owners {
		o.marker = a.markerOf(o.name)
	}
	return a
}

// markerOf returns what is shown for a secret of a name. Where a name holds a
// secret itself, less is shown. A marker needs no escape in JSON.
func (a *automaton) markerOf(name string) string {
	clean := func(r rune) rune {
		if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
			return '_'
		}
		return r
	}
	for _, marker := range []string{"[redacted:" + strings.Map(clean, name) + "]", "[redacted]"} {
		if !a.contains([]byte(marker), depth) {
			return marker
		}
	}
	return "[...]"
}
