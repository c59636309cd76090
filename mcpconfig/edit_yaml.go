// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

func (yamlSyntax) key(name string) string { return yamlText(name) }

func (yamlSyntax) replaceValue(
	src []byte, parent *node, m *member, value *node,
) ([]splice, bool) {
	v := m.value
	if v.end < 0 || m.keyEnd < 0 {
		return nil, false
	}
	w := yamlWriter{unit: indentUnit(src), newline: newline(src)}
	if parent.flow {
		return []splice{{v.start, v.end, spaceAfterColon(src, v.start) + w.inline(value)}}, true
	}
	colon := m.keyEnd + len(src[m.keyEnd:]) - len(bytes.TrimLeft(src[m.keyEnd:], " "))
	if colon >= len(src) || src[colon] != ':' {
		return nil, false
	}
	indent := strings.Repeat(" ", m.keyStart-lineStart(src, m.keyStart))
	keyLineEnd := lineEnd(src, colon)
	switch {
	case v.start <= keyLineEnd: // the value starts on the line of its key
		return []splice{{colon + 1, v.end, w.after(value, indent)}}, true
	case value.kind == mapNode && len(value.members) > 0:
		return []splice{{keyLineEnd, v.end, w.after(value, indent)}}, true
	default: // keep a comment on the line of the key
		return []splice{
			{colon + 1, colon + 1, w.after(value, indent)},
			{keyLineEnd, v.end, ""},
		}, true
	}
}

// spaceAfterColon returns the blank that has to stand before a value at offset.
func spaceAfterColon(src []byte, offset int) string {
	if offset > 0 && src[offset-1] == ':' {
		return " "
	}
	return ""
}

func (yamlSyntax) replaceItem(_ []byte, item, value *node) ([]splice, bool) {
	if item.end < 0 {
		return nil, false
	}
	return []splice{{item.start, item.end, (&yamlWriter{}).inline(value)}}, true
}

func (yamlSyntax) insert(src []byte, parent *node, key string, value *node) ([]splice, bool) {
	w := yamlWriter{unit: indentUnit(src), newline: newline(src)}
	if parent.flow {
		return w.insertFlow(src, parent, key, value)
	}
	if len(parent.members) == 0 {
		return w.insertSection(src, key, value)
	}
	own := slices.DeleteFunc(slices.Clone(parent.members), func(m member) bool { return m.merged })
	if len(own) == 0 || own[len(own)-1].value.end < 0 {
		return nil, false
	}
	last := own[len(own)-1]
	indent := strings.Repeat(" ", last.keyStart-lineStart(src, last.keyStart))
	end := lineEnd(src, last.value.end)
	return []splice{{end, end, w.newline + w.member(key, value, indent)}}, true
}

// insertFlow adds a member to a map in braces.
func (w *yamlWriter) insertFlow(
	src []byte, parent *node, key string, value *node,
) ([]splice, bool) {
	text := yamlText(key) + ": " + w.inline(value)
	if len(parent.members) == 0 {
		return []splice{{parent.start + 1, parent.start + 1, text}}, parent.end > 0
	}
	end := parent.members[len(parent.members)-1].value.end
	if end < 0 {
		return nil, false
	}
	tree := yamlTree{src: src}
	if next := tree.skipBlank(end); next < len(src) && src[next] == ',' {
		return []splice{{next + 1, next + 1, " " + text}}, true
	}
	return []splice{{end, end, ", " + text}}, true
}

// insertSection adds the first section to a text without any.
func (w *yamlWriter) insertSection(src []byte, key string, value *node) ([]splice, bool) {
	text := w.member(key, value, "") + w.newline
	if len(src) > 0 && src[len(src)-1] != '\n' {
		text = w.newline + text
	}
	return []splice{{len(src), len(src), text}}, true
}

func (yamlSyntax) remove(src []byte, parent *node, i int) ([]splice, bool) {
	m := parent.members[i]
	start, end := m.keyStart, m.value.end
	if end < 0 {
		return nil, false
	}
	if !parent.flow {
		if !firstOnLine(src, start) {
			return nil, false
		}
		return []splice{{lineStart(src, start), nextLine(src, end), ""}}, true
	}
	switch {
	case i+1 < len(parent.members) && !parent.members[i+1].merged:
		end = parent.members[i+1].keyStart
	case i > 0:
		start = parent.members[i-1].value.end
	}
	return []splice{{start, end, ""}}, start >= 0
}

// yamlWriter writes trees as YAML: maps as blocks, lists in brackets.
type yamlWriter struct {
	unit    string // by which a level is indented
	newline string
}

// member writes a member of a block map.
func (w *yamlWriter) member(key string, value *node, indent string) string {
	return indent + yamlText(key) + ":" + w.after(value, indent)
}

// after writes what stands after the colon of a key with that indentation.
func (w *yamlWriter) after(value *node, indent string) string {
	if value.kind != mapNode || len(value.members) == 0 {
		return " " + w.inline(value)
	}
	var b strings.Builder
	for _, m := range value.members {
		b.WriteString(w.newline + w.member(m.key, m.value, indent+w.unit))
	}
	return b.String()
}

// inline writes a value in one line.
func (w *yamlWriter) inline(n *node) string {
	var parts []string
	switch n.kind {
	case stringNode:
		return yamlText(n.text)
	case listNode:
		for _, item := range n.items {
			parts = append(parts, w.inline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case mapNode:
		for _, m := range n.members {
			parts = append(parts, yamlText(m.key)+": "+w.inline(m.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return n.text
}

// plainYAML is text that every YAML reader takes for a string, if it is not a word with a
// meaning of its own.
var plainYAML = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./@-]*$`)

// yamlText writes a string, in quotes unless it is plainly text.
func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		return quote(s)
	}
	if plainYAML.MatchString(s) {
		return s
	}
	return quote(s)
}
