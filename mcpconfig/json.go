// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

// maxDepth bounds how deep values may be nested. A real file needs five levels.
const maxDepth = 100

// tooDeep is what to do about values that are nested deeper.
const tooDeep = "remove the value; garra reads no field that is nested so deep"

// jsonSyntax is JSON with comments and trailing commas, as VS Code writes it.
type jsonSyntax struct{}

// parse returns the tree of a JSON text without byte order mark.
func (jsonSyntax) parse(src []byte) (*node, *fileError) {
	if ferr := checkJSONDepth(src); ferr != nil {
		return nil, ferr
	}
	// The parser wants a line comment to end with a newline, which the last line may lack.
	value, err := hujson.Parse(append(bytes.Clone(src), '\n'))
	if err != nil {
		return nil, jsonError(src, err)
	}
	return jsonNode(&value)
}

// checkJSONDepth refuses deeply nested texts before the recursive parser sees them.
func checkJSONDepth(src []byte) *fileError {
	depth := 0
	for i := 0; i < len(src); {
		switch c := src[i]; c {
		case '"':
			i = skipJSONString(src, i)
			continue
		case '/':
			if end := skipJSONComment(src, i); end > i {
				i = end
				continue
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return &fileError{
					CodeFileUnparsable, i,
					fmt.Sprintf("values are nested more than %d levels deep", maxDepth),
					tooDeep,
				}
			}
		case ']', '}':
			depth--
		}
		i++
	}
	return nil
}

// skipJSONString returns the offset after the string that starts at i.
func skipJSONString(src []byte, i int) int {
	for i++; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(src)
}

// skipJSONComment returns the offset after the comment that starts at i, or i when none does.
// A line comment ends before its line break.
func skipJSONComment(src []byte, i int) int {
	rest := src[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			return i + n
		}
		return len(src)
	case bytes.HasPrefix(rest, []byte("/*")):
		if n := bytes.Index(rest[2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
		return len(src)
	}
	return i
}

// hujsonError takes a parser's message apart; it has no typed error.
var hujsonError = regexp.MustCompile(`(?s)^hujson: line (\d+), column (\d+): (.*)$`)

// jsonError turns a parser's error into a place and a message. An invalid literal isn't
// repeated: it may be a secret.
func jsonError(src []byte, err error) *fileError {
	ferr := &fileError{code: CodeFileUnparsable, offset: len(src), message: "this is not JSON", fix: checkPlace}
	match := hujsonError.FindStringSubmatch(err.Error())
	if match == nil {
		return ferr
	}
	line, _ := strconv.Atoi(match[1])
	column, _ := strconv.Atoi(match[2])
	ferr.offset = min(newlineOffset(src, line)+column-1, len(src))
	ferr.message, ferr.fix = explainJSON(src, ferr.offset, match[3])
	return ferr
}

// checkPlace is what to do about a mistake that has no cure of its own.
const checkPlace = "correct what stands here, or right before it"

// explainJSON words a parser's message for people who write such files by hand.
func explainJSON(src []byte, offset int, message string) (text, fix string) {
	literal, isLiteral := strings.CutPrefix(message, "invalid literal: ")
	switch {
	case isConflictMarker(src, offset):
		return "a merge conflict was left in: " + message, "keep one of the two sides and remove the lines of markers"
	case len(bytes.TrimSpace(src)) == 0:
		return "the file is empty", `write {"mcpServers": {}} into it, or remove it`
	case isLiteral && strings.HasPrefix(literal, `"`):
		return "a string has an invalid escape or a line break in it",
			`write \\ for a backslash and \n for a line break`
	case isLiteral:
		return "a word or number is not JSON",
			"put text in double quotes; write true, false, null or a plain number without them"
	case strings.HasSuffix(message, "unexpected EOF"):
		return "the file ends in the middle of a value",
			"look for a missing closing bracket, brace, quote or */"
	case strings.Contains(message, "after object value"):
		return "a comma or closing brace is missing: " + message, "put a comma before this"
	case strings.Contains(message, "after array value"):
		return "a comma or closing bracket is missing: " + message, "put a comma before this"
	case strings.Contains(message, `'\''`):
		return "a string is in single quotes", "use double quotes"
	case strings.Contains(message, "after object name"):
		return "a colon is missing: " + message, "put a colon between the name and its value"
	case strings.Contains(message, "at start of object name"):
		return "a name is missing or not in quotes: " + message, `write each name as "name": value`
	case strings.Contains(message, "after top-level value"):
		return "the text goes on after its last brace: " + message, "remove what follows, or a brace too many before it"
	case strings.Contains(message, "'#'"):
		return "this is not JSON: " + message, "begin a comment with //"
	case strings.Contains(message, "at start of value"):
		return "this is not JSON: " + message, "write a value here; text goes in double quotes"
	}
	return "this is not JSON: " + message, checkPlace
}

// isConflictMarker reports whether a line of a merge that was not finished starts at offset.
func isConflictMarker(src []byte, offset int) bool {
	if offset > 0 && src[offset-1] != '\n' {
		return false
	}
	for _, marker := range []string{"<<<<<<< ", "=======", ">>>>>>> "} {
		if bytes.HasPrefix(src[offset:], []byte(marker)) {
			return true
		}
	}
	return false
}

// newlineOffset returns the offset at which the line starts, counting line feeds alone.
func newlineOffset(src []byte, line int) int {
	offset := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(src[offset:], '\n')
		if n < 0 {
			return len(src)
		}
		offset += n + 1
	}
	return offset
}

// jsonNode converts a parsed value.
func jsonNode(v *hujson.Value) (*node, *fileError) {
	n := &node{start: v.StartOffset, end: v.EndOffset, size: 1}
	switch value := v.Value.(type) {
	case *hujson.Object:
		return n, n.addObject(value)
	case *hujson.Array:
		return n, n.addArray(value)
	case hujson.Literal:
		return n, n.setLiteral(value)
	}
	return n, nil
}

func (n *node) addObject(object *hujson.Object) *fileError {
	n.kind, n.flow = mapNode, true
	for i := range object.Members {
		m := &object.Members[i]
		key, ferr := jsonNode(&m.Name)
		if ferr != nil {
			return ferr
		}
		value, ferr := jsonNode(&m.Value)
		if ferr != nil {
			return ferr
		}
		n.size += value.size
		n.members = append(n.members, member{
			key: key.text, value: value, keyStart: key.start, keyEnd: key.end,
		})
	}
	return nil
}

func (n *node) addArray(array *hujson.Array) *fileError {
	n.kind, n.flow = listNode, true
	for i := range array.Elements {
		item, ferr := jsonNode(&array.Elements[i])
		if ferr != nil {
			return ferr
		}
		n.size += item.size
		n.items = append(n.items, item)
	}
	return nil
}

func (n *node) setLiteral(literal hujson.Literal) *fileError {
	n.text = string(literal)
	switch literal.Kind() {
	case 'n':
		n.kind = nullNode
	case 't', 'f':
		n.kind = boolNode
	case '0':
		n.kind = numberNode
	default:
		n.kind = stringNode
		text, err := jsontext.AppendUnquote(nil, []byte(literal))
		if err != nil {
			return &fileError{
				CodeFileUnparsable, n.start,
				`a string has a \u escape that is half of a surrogate pair`, "write both halves",
			}
		}
		n.text = string(text)
	}
	return nil
}
