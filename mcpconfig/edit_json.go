// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

func (jsonSyntax) key(name string) string { return quote(name) }

func (j jsonSyntax) replaceValue(
	src []byte, parent *node, m *member, value *node,
) ([]splice, bool) {
	w := jsonWriter{
		unit: indentUnit(src), newline: newline(src),
		inline: !firstOnLine(src, m.keyStart) || j.isInline(src, parent),
	}
	w.write(value, indentAt(src, m.keyStart))
	return []splice{{m.value.start, m.value.end, w.String()}}, true
}

func (jsonSyntax) replaceItem(_ []byte, item, value *node) ([]splice, bool) {
	w := jsonWriter{inline: true}
	w.write(value, "")
	return []splice{{item.start, item.end, w.String()}}, true
}

// isInline reports whether a map stands in one line. An empty one is no sign of how the writer
// likes it, so there the whole text decides.
func (jsonSyntax) isInline(src []byte, n *node) bool {
	text := src[n.start:n.end]
	if len(n.members) == 0 {
		text = bytes.TrimSpace(src)
	}
	return !bytes.ContainsAny(text, "\r\n")
}

func (j jsonSyntax) insert(src []byte, parent *node, key string, value *node) ([]splice, bool) {
	w := jsonWriter{unit: indentUnit(src), newline: newline(src), inline: j.isInline(src, parent)}
	// The new member goes behind the last thing in the braces, which may be a comment.
	closing := parent.end - 1
	content := bytes.TrimRight(src[parent.start:closing], " \t\r\n")
	end := parent.start + len(content)
	if len(parent.members) == 0 {
		return w.insertFirst(src, parent, end, key, value)
	}
	last := parent.members[len(parent.members)-1]
	comma := skipJSONExtra(src, last.value.end)
	trailing := src[comma] == ','
	indent := indentAt(src, parent.start) + w.unit
	if firstOnLine(src, last.keyStart) {
		indent = indentAt(src, last.keyStart)
	}
	w.lineBreak(indent)
	w.writeMember(key, value, indent)
	if trailing {
		w.WriteString(",")
		return []splice{{end, end, w.String()}}, true
	}
	return []splice{{last.value.end, last.value.end, ","}, {end, end, w.String()}}, true
}

// insertFirst adds the first member of an empty map, whose text ends at end.
func (w *jsonWriter) insertFirst(
	src []byte, parent *node, end int, key string, value *node,
) ([]splice, bool) {
	indent := indentAt(src, parent.start)
	if w.inline {
		w.writeMember(key, value, indent)
		return []splice{{end, parent.end - 1, w.String()}}, true
	}
	w.lineBreak(indent + w.unit)
	w.writeMember(key, value, indent+w.unit)
	w.lineBreak(indent)
	return []splice{{end, parent.end - 1, w.String()}}, true
}

func (jsonSyntax) remove(src []byte, parent *node, i int) ([]splice, bool) {
	m := parent.members[i]
	start, end := m.keyStart, m.value.end
	var splices []splice
	comma := skipJSONExtra(src, end)
	switch {
	case src[comma] == ',' && comma == end:
		end++
	case src[comma] == ',':
		splices = append(splices, splice{comma, comma + 1, ""})
	case i > 0:
		previous := skipJSONExtra(src, parent.members[i-1].value.end)
		if len(bytes.TrimSpace(src[previous+1:start])) == 0 && !firstOnLine(src, start) {
			start = previous
		} else {
			splices = append(splices, splice{previous, previous + 1, ""})
		}
	}
	start, end = widen(src, start, end)
	return append(splices, splice{start, end, ""}), true
}

// widen extends a range that is removed to its whole lines, when nothing else stands on them,
// or else over the blanks after it.
func widen(src []byte, start, end int) (int, int) {
	after := end
	for after < len(src) && (src[after] == ' ' || src[after] == '\t') {
		after++
	}
	atLineEnd := after == len(src) || src[after] == '\r' || src[after] == '\n'
	switch {
	case atLineEnd && firstOnLine(src, start):
		return lineStart(src, start), nextLine(src, after)
	case atLineEnd:
		return start, end
	case src[after] == '}' || src[after] == ']':
		return start, end
	default:
		return start, after
	}
}

// skipJSONExtra returns the offset after white space and comments.
func skipJSONExtra(src []byte, i int) int {
	for i < len(src) {
		if isYAMLSpace(src[i]) {
			i++
			continue
		}
		end := skipJSONComment(src, i)
		if end == i {
			return i
		}
		i = end
	}
	return i
}

// jsonWriter writes trees as JSON: maps with a member on each line, unless it is inline, and
// lists in one line as long as they hold no maps.
type jsonWriter struct {
	strings.Builder
	unit    string // by which a level is indented
	newline string
	inline  bool
}

// lineBreak starts a line with that indentation, or writes a blank when all goes in one line.
func (w *jsonWriter) lineBreak(indent string) {
	if w.inline {
		w.WriteString(" ")
		return
	}
	w.WriteString(w.newline + indent)
}

func (w *jsonWriter) writeMember(key string, value *node, indent string) {
	w.WriteString(quote(key) + ": ")
	w.write(value, indent)
}

// write writes a value whose line has that indentation.
func (w *jsonWriter) write(n *node, indent string) {
	switch n.kind {
	case stringNode:
		w.WriteString(quote(n.text))
	case listNode:
		w.writeList(n, indent)
	case mapNode:
		w.writeMap(n, indent)
	default:
		w.WriteString(n.text)
	}
}

func (w *jsonWriter) writeList(n *node, indent string) {
	w.WriteString("[")
	for i, item := range n.items {
		if i > 0 {
			w.WriteString(", ")
		}
		w.write(item, indent)
	}
	w.WriteString("]")
}

func (w *jsonWriter) writeMap(n *node, indent string) {
	w.WriteString("{")
	for i, m := range n.members {
		if i > 0 {
			w.WriteString(",")
		}
		if i > 0 || !w.inline {
			w.lineBreak(indent + w.unit)
		}
		w.writeMember(m.key, m.value, indent+w.unit)
	}
	if len(n.members) > 0 && !w.inline {
		w.lineBreak(indent)
	}
	w.WriteString("}")
}

// quote writes a string in double quotes in a way that JSON and YAML read alike: without
// escapes that only one of them has, and without characters that one of them forbids.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' ||
			r == '\ufffe' || r == '\uffff':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+utf8.RuneLen(r)])
		}
	}
	b.WriteByte('"')
	return b.String()
}
