// SPDX-License-Identifier: Apache-2.0

package redact

// A pattern is one spelling of a secret.
type pattern struct {
	text  string
	word  bool // only found between bytes that belong to no word
	owner *owner
}

// An owner is the secret that a pattern belongs to.
type owner struct {
	name   string
	marker string // what is shown instead
	block  bool
}

const (
	// hotDepth is how deep states have a full row in the table. It is less than
	// the length of the shortest pattern, so no pattern ends in such a state.
	hotDepth = 3

	// openers are the bytes that begin an escape. Their classes come first, and
	// lead every row of the table to trap; their classes plus len(openers) lead
	// where the byte itself does.
	openers = `\%&`

	// trap is no state: the byte needs a closer look.
	trap = ^uint32(0)

	// otherClass is the class of all bytes that no pattern has.
	otherClass = 2 * len(openers)

	// none ends a list of deep states. The root is never in one.
	none = 0
)

// An automaton finds patterns (Aho and Corasick, 1975). Nearly all the time in
// text without secrets is spent close to the root, so these states have full
// rows in one small table; what lies deeper follows failure links.
//
// A state below deep is the place of its row in table, others are deep plus an
// index into states. The zero state is the root.
type automaton struct {
	classes  [256]uint8
	table    []uint32
	live     []uint8 // of each row, see state.live
	width    uint32  // of a row
	deep     uint32
	states   []state
	patterns []pattern
	longest  int  // pattern, in bytes
	escaped  bool // a pattern has a byte that begins an escape
}

// A state below the rows of the table.
type state struct {
	fail, child, sibling uint32
	more                 uint32 // the next state in which a shorter pattern ends too
	live                 int32  // how many bytes are the beginning of a longer pattern
	pattern              int32  // that ends here, or -1
	class                uint8  // of the byte that leads here
}

// A node of the trie that an automaton is made of. Nodes are numbered in the
// order of their making; zero is the root.
type node struct {
	child, sibling uint32
	pattern        int32
	depth          int32
	class          uint8
}

// compile makes the automaton of patterns, which are distinct texts longer than
// hotDepth.
func compile(patterns []pattern) *automaton {
	a := &automaton{patterns: patterns}
	a.classify()
	trie := a.plant()
	order := byDepth(trie)
	ids := a.number(trie, order)
	for i, n := range order {
		if uint32(i)*a.width < a.deep {
			a.fillRow(trie, ids, n)
		} else {
			a.fillState(trie, ids, n)
		}
	}
	return a
}

// classify gives each byte that a pattern has a class of its own.
func (a *automaton) classify() {
	for b := range a.classes {
		a.classes[b] = uint8(otherClass)
	}
	for i := range len(openers) {
		a.classes[openers[i]] = uint8(i)
	}
	next := otherClass + 1
	for _, p := range a.patterns {
		a.longest = max(a.longest, len(p.text))
		for i := range len(p.text) {
			switch class := &a.classes[p.text[i]]; {
			case int(*class) == otherClass:
				*class = uint8(next)
				next++
			case opens(p.text[i]):
				a.escaped = true
			}
		}
	}
	a.width = uint32(next)
}

// class returns the class of b as itself, where it may begin an escape too.
func (a *automaton) class(b byte) uint32 {
	class := uint32(a.classes[b])
	if class < uint32(len(openers)) {
		class += uint32(len(openers))
	}
	return class
}

// plant returns the trie of all patterns.
func (a *automaton) plant() []node {
	most := 1
	for _, p := range a.patterns {
		most += len(p.text)
	}
	trie := make([]node, 1, most)
	trie[0].pattern = -1
	for i, p := range a.patterns {
		at := uint32(0)
		for j := range len(p.text) {
			class := uint8(a.class(p.text[j]))
			next := trie[at].child
			for next != none && trie[next].class != class {
				next = trie[next].sibling
			}
			if next == none {
				next = uint32(len(trie))
				trie = append(trie, node{
					sibling: trie[at].child, class: class, depth: trie[at].depth + 1, pattern: -1,
				})
				trie[at].child = next
			}
			at = next
		}
		trie[at].pattern = int32(i)
	}
	return trie
}

// byDepth returns the nodes of a trie, those nearest to the root first.
func byDepth(trie []node) []uint32 {
	order := make([]uint32, 1, len(trie))
	for i := 0; i < len(order); i++ {
		for child := trie[order[i]].child; child != none; child = trie[child].sibling {
			order = append(order, child)
		}
	}
	return order
}

// number gives each node its state and makes room for all.
func (a *automaton) number(trie []node, order []uint32) []uint32 {
	rows := uint32(0)
	for int(rows) < len(order) && trie[order[rows]].depth <= hotDepth {
		rows++
	}
	a.deep = rows * a.width
	a.table = make([]uint32, a.deep)
	a.live = make([]uint8, rows)
	a.states = make([]state, uint32(len(order))-rows)
	ids := make([]uint32, len(trie))
	for i, n := range order {
		if row := uint32(i); row < rows {
			ids[n] = row * a.width
		} else {
			ids[n] = a.deep + row - rows
		}
	}
	return ids
}

// fillRow fills the row of a node near the root: it is that of its longest
// proper suffix but for the children. The suffix of a child is where the suffix
// of its parent goes, and is passed on in the child's own first entry.
func (a *automaton) fillRow(trie []node, ids []uint32, n uint32) {
	id := ids[n]
	row := a.table[id : id+a.width]
	fail := row[0] // left there by the parent
	copy(row, a.table[fail:fail+a.width])
	for i := range len(openers) {
		row[i] = trap
	}
	if trie[n].child != none {
		a.live[id/a.width] = uint8(trie[n].depth)
	} else {
		a.live[id/a.width] = a.live[fail/a.width]
	}
	for child := trie[n].child; child != none; child = trie[child].sibling {
		class := uint32(trie[child].class)
		suffix := row[class]
		if n == 0 {
			suffix = 0
		}
		if ids[child] < a.deep {
			a.table[ids[child]] = suffix
		} else {
			a.states[ids[child]-a.deep].fail = suffix
		}
		row[class] = ids[child]
	}
}

// fillState fills a deeper state.
func (a *automaton) fillState(trie []node, ids []uint32, n uint32) {
	s := &a.states[ids[n]-a.deep]
	s.class, s.pattern, s.live = trie[n].class, trie[n].pattern, trie[n].depth
	if s.fail >= a.deep {
		if fail := &a.states[s.fail-a.deep]; fail.pattern >= 0 {
			s.more = s.fail
		} else {
			s.more = fail.more
		}
	}
	if trie[n].child == none {
		s.live = int32(a.alive(s.fail))
		return
	}
	s.child = ids[trie[n].child]
	for child := trie[n].child; child != none; child = trie[child].sibling {
		c := &a.states[ids[child]-a.deep]
		c.fail = a.next(s.fail, uint32(trie[child].class))
		if trie[child].sibling != none {
			c.sibling = ids[trie[child].sibling]
		}
	}
}

// next returns the state after a byte of a class, which is no trap.
func (a *automaton) next(s, class uint32) uint32 {
	for s >= a.deep {
		from := &a.states[s-a.deep]
		for child := from.child; child != none; child = a.states[child-a.deep].sibling {
			if uint32(a.states[child-a.deep].class) == class {
				return child
			}
		}
		s = from.fail
	}
	return a.table[s+class]
}

// alive returns how many of the bytes before state s are the beginning of a
// pattern that may still come.
func (a *automaton) alive(s uint32) int {
	if s < a.deep {
		return int(a.live[s/a.width])
	}
	return int(a.states[s-a.deep].live)
}
