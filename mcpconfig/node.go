// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"cmp"
	"slices"
)

// kind is what a node is.
type kind uint8

const (
	nullNode kind = iota
	boolNode
	numberNode
	stringNode
	listNode
	mapNode
	taggedNode // a YAML value with a tag that means nothing here, such as !secret
)

// noun returns how messages call a value of this kind.
func (k kind) noun() string {
	switch k {
	case nullNode:
		return "null"
	case boolNode:
		return "true or false"
	case numberNode:
		return "a number"
	case stringNode:
		return "a string"
	case listNode:
		return "a list"
	case mapNode:
		return "a map"
	default:
		return "a value with a YAML tag"
	}
}

// node is a value in a file and the place where it stands. Nodes are not changed after parsing.
// YAML aliases make the tree a graph without cycles: a node may have several parents.
type node struct {
	kind kind
	// text is a string's decoded text, else the literal as it stands in the file, so that
	// 0123, 1.50 and True are kept as written.
	text    string
	items   []*node  // of a list
	members []member // of a map, in the file's order, duplicates included

	start int  // offset of the first byte
	end   int  // offset after the last byte; negative when it isn't known
	flow  bool // a JSON object or array, or a YAML collection in brackets
	size  int  // nodes below and including this one, aliases followed
}

// member is one key of a map with its value.
type member struct {
	key      string
	value    *node
	keyStart int
	keyEnd   int  // negative when it isn't known
	invalid  bool // the key is a list or a map, which YAML allows
	merged   bool // it comes from a YAML merge key (<<) and stands elsewhere
}

// member returns the first member with the key, or nil.
func (n *node) member(key string) *member {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if m := &n.members[i]; m.key == key && !m.invalid {
			return m
		}
	}
	return nil
}

// get returns the value of the first member with the key, or nil.
func (n *node) get(key string) *node {
	if m := n.member(key); m != nil {
		return m.value
	}
	return nil
}

// children returns the members of a map, and none of anything else.
func (n *node) children() []member {
	if n == nil {
		return nil
	}
	return n.members
}

// equal reports whether two trees mean the same, wherever they stand. The order of keys does
// not matter, the order of duplicates of one key does.
func (n *node) equal(o *node) bool {
	if n.kind != o.kind || n.text != o.text {
		return false
	}
	return slices.EqualFunc(n.items, o.items, (*node).equal) &&
		slices.EqualFunc(n.sortedMembers(), o.sortedMembers(), func(a, b member) bool {
			return a.key == b.key && a.invalid == b.invalid && a.value.equal(b.value)
		})
}

func (n *node) sortedMembers() []member {
	return slices.SortedStableFunc(slices.Values(n.members), func(a, b member) int {
		return cmp.Compare(a.key, b.key)
	})
}

// with returns a copy of a map in which the first member of that key has the value, or which
// has one more member. A nil value removes the member.
func (n *node) with(key string, value *node) *node {
	c := &node{kind: mapNode}
	found := false
	for _, m := range n.members {
		if m.key != key || m.invalid || found {
			c.members = append(c.members, m)
			continue
		}
		found = true
		if value != nil {
			m.value = value
			c.members = append(c.members, m)
		}
	}
	if !found && value != nil {
		c.members = append(c.members, member{key: key, value: value})
	}
	return c
}

// walk calls visit for the node and all nodes below it, in order.
func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, item := range n.items {
		item.walk(visit)
	}
	for _, m := range n.members {
		m.value.walk(visit)
	}
}
