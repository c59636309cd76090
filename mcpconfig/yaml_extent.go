// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"

	"go.yaml.in/yaml/v4"
)

// The library's nodes don't say where they end, which edits and digests need. The functions
// here find out by reading on from where a node starts. They return -1 when what they read is
// not what they expect; nothing depends on them being right, since every edit is checked by
// parsing its result.

// skipProperties returns where the value starts whose anchor or tag stands at offset. Of an
// empty value only the line of its properties is looked at.
func (t *yamlTree) skipProperties(offset int, empty bool) int {
	for offset < len(t.src) && (t.src[offset] == '&' || t.src[offset] == '!') {
		end := offset
		for end < len(t.src) && !isYAMLSpace(t.src[end]) {
			end++
		}
		offset = t.skipBlank(end)
		if empty && offset > t.lineEnd(end) {
			return end
		}
	}
	return offset
}

// skipBlank returns the offset after white space, line breaks and comments.
func (t *yamlTree) skipBlank(offset int) int {
	for offset < len(t.src) {
		switch c := t.src[offset]; {
		case isYAMLSpace(c):
			offset++
		case c == '#' && (offset == 0 || isYAMLSpace(t.src[offset-1])):
			offset = t.lineEnd(offset)
		default:
			return offset
		}
	}
	return offset
}

func isYAMLSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// lineEnd returns the offset of the line break at or after offset.
func (t *yamlTree) lineEnd(offset int) int { return lineEnd(t.src, offset) }

// scalarEnd returns where the scalar ends that starts at start, in a block that is indented by
// indent spaces.
func (t *yamlTree) scalarEnd(y *yaml.Node, start, indent int) int {
	switch {
	case y.Style&yaml.DoubleQuotedStyle != 0:
		return t.quotedEnd(start, '"')
	case y.Style&yaml.SingleQuotedStyle != 0:
		return t.quotedEnd(start, '\'')
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return t.blockScalarEnd(start, indent)
	default:
		return t.plainEnd(start, y.Value)
	}
}

// quotedEnd returns the offset after the closing quote. A doubled single quote is two strings
// side by side to this loop, which comes to the same end.
func (t *yamlTree) quotedEnd(start int, quote byte) int {
	if start >= len(t.src) || t.src[start] != quote {
		return -1
	}
	for i := start + 1; i < len(t.src); i++ {
		switch c := t.src[i]; {
		case c == '\\' && quote == '"':
			i++
		case c == quote && quote == '\'' && i+1 < len(t.src) && t.src[i+1] == quote:
			i++
		case c == quote:
			return i + 1
		}
	}
	return -1
}

// plainEnd walks over an unquoted scalar, which may span lines: where value has a blank or a
// line break, the text may have any white space.
func (t *yamlTree) plainEnd(start int, value string) int {
	i := start
	for j := 0; j < len(value); {
		switch {
		case i >= len(t.src):
			return -1
		case t.src[i] == value[j]:
			i++
			j++
		case isYAMLSpace(t.src[i]) && (j == 0 || isYAMLSpace(value[j]) || isYAMLSpace(value[j-1])):
			i = skipSpace(t.src, i)
			for j < len(value) && isYAMLSpace(value[j]) {
				j++
			}
		default:
			return -1
		}
	}
	return i
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && isYAMLSpace(src[i]) {
		i++
	}
	return i
}

// blockScalarEnd returns the end of the last line of a literal or folded block scalar: the
// last one that is indented deeper than indent. With the keep indicator (+) blank lines after
// it belong to the text.
func (t *yamlTree) blockScalarEnd(start, indent int) int {
	end := t.lineEnd(start)
	header, _, _ := bytes.Cut(t.src[start:end], []byte("#"))
	keep := bytes.ContainsRune(header, '+')
	for next := nextLine(t.src, end); next < len(t.src); next = nextLine(t.src, next) {
		stop := t.lineEnd(next)
		line := t.src[next:stop]
		text := bytes.TrimLeft(line, " ")
		switch {
		case len(bytes.TrimSpace(text)) == 0:
			if keep {
				end = stop
			}
		case len(line)-len(text) > indent:
			end = stop
		default:
			return end
		}
	}
	return end
}

// closeCollection moves the end of a map or list in brackets, which is the end of its last
// child so far, past the closing bracket.
func (t *yamlTree) closeCollection(n *node) {
	if n.flow && n.end >= 0 {
		n.end = t.closingBracket(n, n.end)
	}
}

// closingBracket returns the offset after the bracket that closes a flow collection. A pair in
// a list, as in [a: b], is a map without brackets of its own.
func (t *yamlTree) closingBracket(n *node, end int) int {
	if n.start >= len(t.src) {
		return -1
	}
	want := byte(']')
	switch t.src[n.start] {
	case '{':
		want = '}'
	case '[':
	default:
		return end
	}
	if end == n.start {
		end++
	}
	for end = t.skipBlank(end); end < len(t.src); end = t.skipBlank(end + 1) {
		switch t.src[end] {
		case want:
			return end + 1
		case ',':
		default:
			return -1
		}
	}
	return -1
}

// lineEnd returns the offset of the line break at or after offset, or the end of src.
func lineEnd(src []byte, offset int) int {
	if n := bytes.IndexAny(src[offset:], "\r\n"); n >= 0 {
		return offset + n
	}
	return len(src)
}

// nextLine returns where the line after the one of offset starts, or the end of src.
func nextLine(src []byte, offset int) int {
	end := lineEnd(src, offset)
	if end < len(src) && src[end] == '\r' {
		end++
	}
	if end < len(src) && src[end] == '\n' {
		end++
	}
	return end
}
