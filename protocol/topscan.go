// SPDX-License-Identifier: Apache-2.0

package protocol

// maxKept bounds the id and the member name that a topScanner keeps, in bytes.
const maxKept = 256

// A topScanner finds the id of a JSON-RPC message that is too long to be kept,
// byte by byte and in constant memory. It is lenient: of text that is no JSON
// it finds nothing or something, never more than that.
type topScanner struct {
	depth  int
	inStr  bool
	escape bool
	isName bool   // the string being read is a member name of the top level
	name   []byte // the last such name
	value  []byte // the text of the top level's id so far
	keep   bool   // the value being read is the id
	id     ID
	method bool
}

func newTopScanner() *topScanner { return &topScanner{} }

func (s *topScanner) write(p []byte) {
	for _, c := range p {
		s.step(c)
	}
}

func (s *topScanner) step(c byte) {
	if s.inStr {
		s.stepString(c)
		return
	}
	switch c {
	case '"':
		s.inStr = true
		if s.depth == 1 && !s.keep && s.name == nil {
			s.isName, s.name = true, []byte{}
		}
		s.keepByte(c)
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
		if s.depth == 0 {
			s.endMember()
		}
	case ',':
		if s.depth == 1 {
			s.endMember()
		}
	case ':':
		if s.depth == 1 {
			s.keep = string(s.name) == "id"
			s.method = s.method || string(s.name) == "method"
		}
	default:
		s.keepByte(c)
	}
}

func (s *topScanner) stepString(c byte) {
	switch {
	case s.escape:
		s.escape = false
	case c == '\\':
		s.escape = true
	case c == '"':
		s.inStr = false
		s.keepByte(c)
		s.isName = false
		return
	}
	if s.isName && len(s.name) < maxKept {
		s.name = append(s.name, c)
	}
	s.keepByte(c)
}

// keepByte adds to the id's text.
func (s *topScanner) keepByte(c byte) {
	if s.keep && s.depth == 1 && len(s.value) < maxKept {
		s.value = append(s.value, c)
	}
}

func (s *topScanner) endMember() {
	if s.keep {
		if id, err := ParseID(trim(s.value)); err == nil {
			s.id = id
		}
	}
	s.keep, s.name, s.value = false, nil, nil
}

// tooLarge is the error for the line that was scanned.
func (s *topScanner) tooLarge(size, limit int64) error {
	return &TooLargeError{ID: s.id, Reply: !s.method, Size: size, Limit: limit}
}
