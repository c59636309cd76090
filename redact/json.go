// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// JSON returns b, which is one value or message in JSON, with a marker in the
// place of each secret, and b itself when there is none. Only the insides of
// strings change, values and names, and what they have in them besides the
// secret stays as it was spelled. A number that has a secret in it becomes a
// string, but for the id of a message (JSON-RPC 2.0). Where the secret is itself
// a text in JSON and stands in b as such, each value in it is replaced. So what
// was valid stays valid; what is not JSON is handled as [Set.Text] does.
func (s *Set) JSON(b []byte) (out []byte, found Found) {
	a := s.current.Load()
	if a == nil {
		return b, found
	}
	// A string is a part of the layer above the text in which it stands. Only a
	// secret with something like an escape in it may read differently there.
	if !a.escaped && !a.contains(b, depth+1) {
		return b, found
	}
	if !json.Valid(b) {
		return a.redact(b)
	}
	e := editor{auto: a, in: b, message: 1}
	if bytes.HasPrefix(bytes.TrimLeft(b, " \t\r\n"), []byte("[")) {
		e.message = 2 // a batch
	}
	e.findWide()
	e.run()
	if e.found.None() {
		return b, found
	}
	return append(e.out, b[e.done:]...), e.found
}

// undoJSON adds to dst what the escape at the beginning of text stands for, and
// returns its length. Half a character becomes U+FFFD.
func undoJSON(dst, text []byte) ([]byte, int) {
	if text[1] != 'u' {
		return append(dst, unescapeLetter(text[1])), len(`\n`)
	}
	const short = len(`\u0000`)
	for _, n := range []int{short, min(maxEscape, len(text))} {
		if out, v := unescape(dst, text[:n]); v == complete {
			return out, n
		}
	}
	return utf8.AppendRune(dst, utf8.RuneError), short
}

// An editor replaces secrets in a text in JSON.
type editor struct {
	auto  *automaton
	in    []byte
	out   []byte
	done  int // how much of in is in out
	found Found
	wide  []span // secrets that go over more than one value

	names   []map[string]int // in each open object or array, how often a name was made
	message int              // how many of them are open inside of a message
	id      bool             // the value to come is the id of the message

	plain   []byte // a string as it reads
	origins []int  // of each byte of plain, in in; and its end
}

// findWide finds the secrets that are JSON themselves.
func (e *editor) findWide() {
	var found Found
	e.auto.each(e.in, 0, &found, func(one span) {
		if bytes.IndexByte(e.in[one.from:one.to], '"') >= 0 {
			e.wide = append(e.wide, one)
		}
	})
}

// run goes over the tokens.
func (e *editor) run() {
	for at := 0; at < len(e.in); {
		switch c := e.in[at]; {
		case c == '"':
			at = e.text(at)
		case c == '{' || c == '[':
			e.names = append(e.names, nil)
			e.id = false
			at++
		case c == '}' || c == ']':
			e.names = e.names[:len(e.names)-1]
			at++
		case c == '-' || c >= '0' && c <= '9':
			at = e.number(at)
		default:
			e.id = e.id && c != ','
			at++
		}
	}
}

// number edits the number that begins at from and returns its end.
func (e *editor) number(from int) int {
	to := from
	for to < len(e.in) && bytes.IndexByte([]byte("+-.0123456789Ee"), e.in[to]) >= 0 {
		to++
	}
	isID := e.id
	e.id = false
	if isID || e.replaceWide(from, to) {
		return to
	}
	var first *owner
	e.auto.each(e.in[from:to], 0, &e.found, func(one span) {
		if first == nil {
			first = one.owner
		}
	})
	if first != nil {
		e.replace(from, to, `"`+first.marker+`"`)
	}
	return to
}

// text edits the string whose quote is at from and returns its end.
func (e *editor) text(from int) int {
	to, escaped := from+1, false
	for ; e.in[to] != '"'; to++ {
		if e.in[to] == '\\' {
			escaped = true
			to++
		}
	}
	inside, end := e.in[from+1:to], to+1
	isName := e.isName(end)
	if isName {
		e.id = len(e.names) == e.message && string(inside) == "id"
	} else {
		e.id = false
		if e.replaceWide(from, end) {
			return end
		}
	}
	before := e.found.Count
	if isName {
		e.replace(from+1, from+1, "")
	}
	opened := len(e.out)
	e.inside(from+1, inside, escaped)
	if isName && e.found.Count > before {
		e.keepApart(opened, to)
	}
	return end
}

// isName tells whether a colon comes after at.
func (e *editor) isName(at int) bool {
	rest := bytes.TrimLeft(e.in[at:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// inside edits what a string holds, which begins at from.
func (e *editor) inside(from int, text []byte, escaped bool) {
	if !escaped {
		e.auto.each(text, depth, &e.found, func(one span) {
			e.replace(from+one.from, from+one.to, one.owner.marker)
		})
		return
	}
	e.read(from, text)
	e.auto.each(e.plain, depth, &e.found, func(one span) {
		e.replace(e.origins[one.from], e.origins[one.to], one.owner.marker)
	})
}

// read fills plain and origins with a string that begins at from.
func (e *editor) read(from int, text []byte) {
	e.plain, e.origins = e.plain[:0], e.origins[:0]
	for at := 0; at < len(text); {
		start := from + at
		if text[at] == '\\' {
			var n int
			e.plain, n = undoJSON(e.plain, text[at:])
			at += n
		} else {
			e.plain = append(e.plain, text[at])
			at++
		}
		for len(e.origins) < len(e.plain) {
			e.origins = append(e.origins, start)
		}
	}
	e.origins = append(e.origins, from+len(text))
}

// replaceWide replaces a value when a secret goes beyond it, and tells whether
// it did.
func (e *editor) replaceWide(from, to int) bool {
	for len(e.wide) > 0 && (e.wide[0].to <= from || e.wide[0].from > from && e.wide[0].to < to) {
		e.wide = e.wide[1:]
	}
	if len(e.wide) == 0 || e.wide[0].from >= to {
		return false
	}
	e.found.add(e.wide[0].owner)
	e.found.Count++
	e.replace(from, to, `"`+e.wide[0].owner.marker+`"`)
	return true
}

// replace writes text in the place of a part of the input.
func (e *editor) replace(from, to int, text string) {
	e.out = append(append(e.out, e.in[e.done:from]...), text...)
	e.done = to
}

// keepApart adds a number to a name that was edited, when that made it the same
// as another one of its object. It begins at opened in the output and ends at
// to in the input.
func (e *editor) keepApart(opened, to int) {
	e.replace(to, to, "")
	name := string(e.out[opened:])
	names := &e.names[len(e.names)-1]
	if *names == nil {
		*names = make(map[string]int)
	}
	(*names)[name]++
	if n := (*names)[name]; n > 1 {
		e.out = fmt.Appendf(e.out, " #%d", n)
	}
}
