// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"slices"
)

const (
	// depth is how many escapes may lie in each other: JSON in a string of JSON
	// in a URL, and one more.
	depth = 4

	// same is more bytes than any pattern has.
	same = 1 << 30
)

// A piece is a byte of a layer, and the bytes of the text that it stands for.
type piece struct {
	b        byte
	dead     bool // begins no escape, in no layer above either
	from, to int
}

func (p piece) opens() bool { return opens(p.b) && !p.dead }

// A layer is the text as it reads when so many escapes are undone. Layer 0 is
// the text itself.
type layer struct {
	state uint32
	words []span  // found, if the next byte belongs to no word
	past  []piece // the latest ones, since this layer began to differ
	base  int     // where in the text that was; before it, layers are the same
	alike int     // how many bytes have been the same in the layer below

	escape [maxEscape]piece // read but not undone, of the layer below
	length int              // of escape
}

// A span is where a pattern was found in the text.
type span struct {
	from, to int
	owner    *owner
}

// A scan looks for patterns in a text and in all its layers at once, in one pass
// and in linear time.
//
// As long as there are no escapes all layers are the same, and one state of the
// automaton is that of all. Where an escape begins, a layer parts from the one
// below and has a state of its own until both have read the same for as long as
// a pattern could remember.
type scan struct {
	auto   *automaton
	text   []byte // from offset base on
	base   int
	at     int // the offset of the next byte to read
	top    int // layers above are the same as this one
	limit  int // the highest layer
	layers [depth + 2]layer
	found  []span
}

// run reads to the given offset of the text.
func (s *scan) run(to int) {
	for s.at < to {
		if s.top == 0 && s.skim(to) {
			return
		}
		p := piece{b: s.text[s.at-s.base], from: s.at, to: s.at + 1}
		s.at++
		s.push(0, p)
		s.join()
	}
}

// skim reads as long as all layers are the same, and tells whether that was up
// to the given offset.
func (s *scan) skim(to int) bool {
	a, l := s.auto, &s.layers[0]
	text := s.text[s.at-s.base : to-s.base]
	if len(l.words) > 0 && len(text) > 0 {
		s.settleWords(l, text[0])
	}
	i, state := 0, l.state
	if state >= a.deep && len(text) > 0 && !opens(text[0]) {
		i, state = s.dive(text, 0, a.next(state, uint32(a.classes[text[0]])))
	}
	if state < a.deep {
		i, state = s.skimRows(text, i, state)
	}
	l.state = state
	s.at += i
	return i == len(text)
}

// skimRows is skim from text[i] on, where the state has a row. It returns the
// place of the byte to read next, and the state before it.
func (s *scan) skimRows(text []byte, i int, state uint32) (int, uint32) {
	table, deep, classes := s.auto.table, s.auto.deep, &s.auto.classes
	for i < len(text) {
		next := table[state+uint32(classes[text[i]])]
		switch {
		case next < deep:
			state = next
			i++
			continue
		case next != trap:
			i, state = s.dive(text, i, next)
		default:
			length, after := s.auto.hop(text[i:], state)
			if length == 0 {
				return i, state
			}
			i += length
			state = after
		}
		if state >= deep {
			break
		}
	}
	return i, state
}

// hop reads what looks like an escape, and on until all layers are the same
// again, if that is soon and nothing needs to be remembered; else it returns 0.
// It is a short cut for what text is full of: quotes and line ends in JSON, and
// signs that begin no escape.
func (a *automaton) hop(text []byte, state uint32) (length int, after uint32) {
	if len(text) < 2 || opens(text[1]) {
		return 0, state
	}
	var room [4]byte
	value, v := unescape(room[:0], text[:2])
	below := a.next(state, a.class(text[0]))
	if v == incomplete || below >= a.deep {
		return 0, state
	}
	if v == invalid {
		return 1, below
	}
	below, above := a.next(below, a.class(text[1])), a.next(state, a.class(value[0]))
	for i, b := range text[2:] {
		if below >= a.deep || above >= a.deep || opens(b) {
			return 0, state
		}
		if below == above && a.alive(below) < i {
			return 2 + i, below
		}
		below, above = a.table[below+uint32(a.classes[b])], a.table[above+uint32(a.classes[b])]
	}
	return 0, state
}

// dive reads on from the state after text[i], which is a deep one, until the
// state is none any more or an escape begins. It returns the place of the byte
// to read next, and the state before it.
func (s *scan) dive(text []byte, i int, state uint32) (int, uint32) {
	for {
		i++
		s.report(0, state, s.at+i)
		if i == len(text) {
			return i, state
		}
		if len(s.layers[0].words) > 0 {
			s.settleWords(&s.layers[0], text[i])
		}
		if state < s.auto.deep || opens(text[i]) {
			return i, state
		}
		state = s.auto.next(state, uint32(s.auto.classes[text[i]]))
	}
}

// push adds a piece to layer k, and to those above it.
func (s *scan) push(k int, p piece) {
	l := &s.layers[k]
	if len(l.words) > 0 {
		s.settleWords(l, p.b)
	}
	parts := k == s.top && k < s.limit && p.opens()
	if parts {
		s.part(k, p)
	}
	if k > 0 {
		l.remember(p, s.auto.longest)
	}
	l.state = s.auto.next(l.state, s.auto.class(p.b))
	s.report(k, l.state, p.to)
	if k < s.top && !parts {
		s.decode(k+1, p)
	}
}

// part lets the layer above k have a life of its own, from an escape on that
// begins with p.
func (s *scan) part(k int, p piece) {
	l, above := &s.layers[k], &s.layers[k+1]
	above.state, above.alike = l.state, same
	above.past, above.base = append(above.past[:0], l.past...), l.base
	if k == 0 {
		above.base = p.from
	}
	above.escape[0], above.length = p, 1
	s.top++
}

// decode takes a piece of the layer below k and adds to k what it stands for.
func (s *scan) decode(k int, p piece) {
	l := &s.layers[k]
	if l.length == 0 && !p.opens() {
		l.alike++
		s.push(k, p)
		return
	}
	l.escape[l.length] = p
	l.length++
	var read [maxEscape]byte
	for i := range l.length {
		read[i] = l.escape[i].b
	}
	var room [8]byte
	value, v := unescape(room[:0], read[:l.length])
	switch v {
	case complete:
		from := l.escape[0].from
		l.length, l.alike = 0, 0
		for _, b := range value {
			s.push(k, piece{b: b, from: from, to: p.to})
		}
	case invalid:
		s.giveUp(k, !p.opens())
	}
}

// giveUp takes the first piece of what layer k took for an escape as itself, and
// the others as what they are.
func (s *scan) giveUp(k int, dead bool) {
	l := &s.layers[k]
	escape, length := l.escape, l.length
	l.length = 0
	l.alike++
	escape[0].dead = dead
	s.push(k, escape[0])
	for _, p := range escape[1:length] {
		s.decode(k, p)
	}
}

// join ends the life of layers that are again like the layer below.
func (s *scan) join() {
	for s.top > 0 {
		l, below := &s.layers[s.top], &s.layers[s.top-1]
		differs := l.length > 0 || l.state != below.state || len(l.words)+len(below.words) > 0
		if differs || s.auto.alive(l.state) >= l.alike {
			return
		}
		s.top--
	}
}

// finish reads the end of the text, where no escape and no word goes on.
func (s *scan) finish() {
	for k := 1; k <= s.top; k++ {
		for s.layers[k].length > 0 {
			s.giveUp(k, true)
		}
	}
	for k := range s.top + 1 {
		s.settleWords(&s.layers[k], ' ')
		s.layers[k].state = 0
	}
	s.top = 0
}

// report notes the patterns that end in a state of layer k.
func (s *scan) report(k int, state uint32, end int) {
	for state >= s.auto.deep {
		at := &s.auto.states[state-s.auto.deep]
		if at.pattern >= 0 {
			s.note(k, &s.auto.patterns[at.pattern], end)
		}
		state = at.more
	}
}

func (s *scan) note(k int, p *pattern, end int) {
	from, before := s.origin(k, len(p.text), end)
	found := span{from: from, to: end, owner: p.owner}
	switch {
	case !p.word:
		s.found = append(s.found, found)
	case !inWord(before):
		s.layers[k].words = append(s.layers[k].words, found)
	}
}

// origin returns where in the text the last length bytes of layer k begin, and
// the byte before them. They end at the given offset.
func (s *scan) origin(k, length, end int) (from int, before byte) {
	past := s.layers[k].past
	if k == 0 {
		return end - length, s.byteAt(end - length - 1)
	}
	if length < len(past) {
		return past[len(past)-length].from, past[len(past)-length-1].b
	}
	from = s.layers[k].base - (length - len(past))
	return from, s.byteAt(from - 1)
}

// byteAt returns a byte of the text, a blank before its beginning.
func (s *scan) byteAt(at int) byte {
	if at < s.base {
		return ' '
	}
	return s.text[at-s.base]
}

// remember adds a piece to the past, which need not reach back further than the
// longest pattern and the byte before it.
func (l *layer) remember(p piece, longest int) {
	if len(l.past) > 2*longest {
		l.past = append(l.past[:0], l.past[len(l.past)-longest-1:]...)
	}
	l.past = append(l.past, p)
}

// settleWords decides on what was found only as a whole word: b follows.
func (s *scan) settleWords(l *layer, b byte) {
	if !inWord(b) {
		s.found = append(s.found, l.words...)
	}
	l.words = l.words[:0]
}

// inWord tells whether b belongs to a word, as letters, digits and bytes of
// characters beyond ASCII do.
func inWord(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b >= 0x80
}

// settled returns the offset before which nothing can be found any more.
func (s *scan) settled() int {
	at := s.at
	for k := range s.top + 1 {
		l := &s.layers[k]
		if length := s.auto.alive(l.state); length > 0 {
			from, _ := s.origin(k, length, s.at)
			at = min(at, from)
		}
		if l.length > 0 && k > 0 {
			at = min(at, l.escape[0].from)
		}
		for _, w := range l.words {
			at = min(at, w.from)
		}
	}
	return at
}

// take removes from what was found all that nothing can be added to, and calls
// yield for it, in the order of the text and with overlapping spans as one. It
// returns the offset up to which the text is settled.
func (s *scan) take(found *Found, yield func(span)) int {
	settled := s.settled()
	if len(s.found) == 0 {
		return settled
	}
	slices.SortFunc(s.found, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	next := 0
	for next < len(s.found) {
		one, last := s.found[next], next+1
		for last < len(s.found) && s.found[last].from < one.to {
			one.to = max(one.to, s.found[last].to)
			last++
		}
		if one.to > settled {
			settled = min(settled, one.from)
			break
		}
		for _, f := range s.found[next:last] {
			found.add(f.owner)
		}
		found.Count++
		yield(one)
		next = last
	}
	s.found = slices.Delete(s.found, 0, next)
	return settled
}
