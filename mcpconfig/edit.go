// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// splice replaces the bytes from start to end by text.
type splice struct {
	start, end int
	text       string
}

// editor knows how one syntax writes changes. Its functions return the splices that bring a
// change about, or false when they don't know how. They need not be right in every case: the
// document parses the result and compares.
type editor interface {
	parser
	// replaceValue gives the member of a map another value.
	replaceValue(src []byte, parent *node, m *member, value *node) ([]splice, bool)
	// replaceItem puts another value in a list.
	replaceItem(src []byte, item, value *node) ([]splice, bool)
	// insert adds a member at the end of a map.
	insert(src []byte, parent *node, key string, value *node) ([]splice, bool)
	// remove removes the i-th member of a map.
	remove(src []byte, parent *node, i int) ([]splice, bool)
	// key writes a key.
	key(name string) string
}

func (d *Document) editor() editor {
	if isYAML(d.src.name) {
		return yamlSyntax{}
	}
	return jsonSyntax{}
}

// replace makes text the document's, without byte order mark, or returns ErrNotEditable when it
// can't be parsed.
func (d *Document) replace(text []byte) error {
	if d.src.bom {
		text = slices.Concat([]byte(bom), text)
	}
	next := &source{name: d.src.name, path: d.src.path, mode: d.src.mode}
	if ferr := next.setData(text); ferr != nil || !next.isMap() {
		return ErrNotEditable
	}
	d.src = next
	return nil
}

// apply carries out splices, and takes them back unless the result means what is wanted.
func (d *Document) apply(splices []splice, ok bool, want *node) error {
	if !ok {
		return ErrNotEditable
	}
	before := d.src
	slices.SortStableFunc(splices, func(a, b splice) int { return cmp.Compare(a.start, b.start) })
	var text []byte
	at := 0
	for _, s := range splices {
		if s.start < at || s.end < s.start || s.end > len(before.data) {
			return ErrNotEditable
		}
		text = append(append(text, before.data[at:s.start]...), s.text...)
		at = s.end
	}
	text = append(text, before.data[at:]...)
	if err := d.replace(text); err != nil {
		return err
	}
	if !sameMeaning(d.src.root, want) {
		d.src = before
		return ErrNotEditable
	}
	return nil
}

// sameMeaning compares trees; an empty YAML document is an empty map.
func sameMeaning(got, want *node) bool {
	return got.asMap().equal(want.asMap())
}

// asMap returns an empty map for null, and any other node itself.
func (n *node) asMap() *node {
	if n.kind == nullNode {
		return &node{kind: mapNode, start: n.start, end: n.end, flow: n.flow}
	}
	return n
}

// set puts a value at a path of keys, making the maps that lead there. The last step may be an
// item of a list.
func (d *Document) set(path []string, value *node) error {
	want, ok := d.src.root.asMap().withPath(path, value)
	if !ok {
		return ErrNotEditable
	}
	parent, last := d.src.root.asMap(), len(path)-1
	for i, key := range path {
		if parent.kind == listNode {
			return d.setItem(parent, key, value, want)
		}
		m := parent.member(key)
		if m == nil || m.merged {
			splices, ok := d.editor().insert(d.src.data, parent, key, wrap(path[i+1:], value))
			return d.apply(splices, ok, want)
		}
		if i == last || m.value.kind == nullNode {
			splices, ok := d.editor().replaceValue(d.src.data, parent, m, wrap(path[i+1:], value))
			return d.apply(splices, ok, want)
		}
		parent = m.value
	}
	return ErrNotEditable
}

// setItem replaces an item of a list.
func (d *Document) setItem(list *node, step string, value, want *node) error {
	index, ok := itemIndex(step)
	if !ok || index >= len(list.items) {
		return ErrNotEditable
	}
	splices, ok := d.editor().replaceItem(d.src.data, list.items[index], value)
	return d.apply(splices, ok, want)
}

// wrap puts a value into maps of one key each.
func wrap(path []string, value *node) *node {
	for _, key := range slices.Backward(path) {
		value = &node{kind: mapNode, members: []member{{key: key, value: value}}}
	}
	return value
}

// withPath returns a copy of a map with the value at the path, or false when the path leads
// through something that is no map. A nil value removes what is there.
func (n *node) withPath(path []string, value *node) (*node, bool) {
	if len(path) == 0 {
		return value, true
	}
	if index, ok := itemIndex(path[0]); ok && n.kind == listNode {
		if index >= len(n.items) || value == nil {
			return nil, false
		}
		c := *n
		c.items = slices.Clone(n.items)
		c.items[index] = value
		return &c, len(path) == 1
	}
	n = n.asMap()
	if n.kind != mapNode {
		return nil, false
	}
	child := n.get(path[0])
	if child == nil {
		child = &node{kind: nullNode}
	}
	changed, ok := child.withPath(path[1:], value)
	return n.with(path[0], changed), ok
}

// remove removes what stands at a path of keys.
func (d *Document) remove(path []string) error {
	want, ok := d.src.root.withPath(path, nil)
	parentPath, key := path[:len(path)-1], path[len(path)-1]
	parent := d.src.root.at(parentPath...)
	if !ok || parent == nil || parent.kind != mapNode {
		return ErrNotEditable
	}
	if len(parent.members) == 1 && !parent.flow {
		// A block map can't be empty.
		return d.set(parentPath, &node{kind: mapNode})
	}
	i := slices.IndexFunc(parent.members, func(m member) bool { return m.key == key && !m.invalid })
	if i < 0 || parent.members[i].merged {
		return ErrNotEditable
	}
	splices, ok := d.editor().remove(d.src.data, parent, i)
	return d.apply(splices, ok, want)
}

// rename gives the member at a path another key.
func (d *Document) rename(path []string, name string) error {
	parent := d.src.root.at(path[:len(path)-1]...)
	m := parent.member(path[len(path)-1])
	if m == nil || m.merged || m.keyEnd < 0 {
		return ErrNotEditable
	}
	renamed := parent.with(m.key, nil).with(name, m.value)
	want, ok := d.src.root.withPath(path[:len(path)-1], renamed)
	return d.apply([]splice{{m.keyStart, m.keyEnd, d.editor().key(name)}}, ok, want)
}

// lineStart returns where the line of offset starts.
func lineStart(src []byte, offset int) int {
	return bytes.LastIndexAny(src[:offset], "\r\n") + 1
}

// indentAt returns the blanks at the start of the line of offset.
func indentAt(src []byte, offset int) string {
	line := src[lineStart(src, offset):]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// firstOnLine reports whether only blanks stand before offset on its line.
func firstOnLine(src []byte, offset int) bool {
	return len(bytes.TrimLeft(src[lineStart(src, offset):offset], " \t")) == 0
}

// newline returns the line break that the text uses.
func newline(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indentUnit returns by how much the text indents: the indentation of the first line that has
// any and is no comment.
func indentUnit(src []byte) string {
	for line := range bytes.Lines(src) {
		text := bytes.TrimLeft(line, " \t")
		if rest := string(text); len(text) < len(line) && strings.TrimSpace(rest) != "" &&
			!strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "/*") &&
			!strings.HasPrefix(rest, "*") && !strings.HasPrefix(rest, "#") {
			return string(line[:len(line)-len(text)])
		}
	}
	return "  "
}
