// SPDX-License-Identifier: Apache-2.0

package redact

import "slices"

// chunk is how many bytes are read before what was found in them is taken.
const chunk = 64 << 10

// Found says what was taken out. The zero Found is nothing.
type Found struct {
	Count int // of the places

	names   []string
	blocked bool
}

// Names returns the names of the secrets that were found, each once.
func (f Found) Names() []string { return slices.Clone(f.names) }

// Blocked tells whether one of the secrets has the policy [Block], so that the
// message is to be kept back.
func (f Found) Blocked() bool { return f.blocked }

// None tells whether nothing was found.
func (f Found) None() bool { return f.Count == 0 }

func (f *Found) add(o *owner) {
	if !slices.Contains(f.names, o.name) {
		f.names = append(f.names, o.name)
	}
	f.blocked = f.blocked || o.block
}

// Text returns b with a marker in the place of each secret, in whatever form it
// stands there. It returns b itself when there is none. For a message in JSON
// see [Set.JSON].
func (s *Set) Text(b []byte) (out []byte, found Found) {
	a := s.current.Load()
	if a == nil {
		return b, found
	}
	return a.redact(b)
}

// String is [Set.Text] for a string.
func (s *Set) String(text string) string {
	a := s.current.Load()
	if a == nil {
		return text
	}
	if out, found := a.redact([]byte(text)); !found.None() {
		return string(out)
	}
	return text
}

func (a *automaton) redact(b []byte) (out []byte, found Found) {
	done := 0
	a.each(b, depth, &found, func(one span) {
		out = append(append(out, b[done:one.from]...), one.owner.marker...)
		done = one.to
	})
	if found.None() {
		return b, found
	}
	return append(out, b[done:]...), found
}

// each calls yield for each secret in b, in their order.
func (a *automaton) each(b []byte, limit int, found *Found, yield func(span)) {
	s := scan{auto: a, text: b, limit: limit}
	for to := min(chunk, len(b)); s.at < len(b); to = min(to+chunk, len(b)) {
		s.run(to)
		s.take(found, yield)
	}
	s.finish()
	s.take(found, yield)
}

// contains tells whether there is a secret in b.
func (a *automaton) contains(b []byte, limit int) bool {
	var found Found
	a.each(b, limit, &found, func(span) {})
	return !found.None()
}
