// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxExpanded bounds how many values a YAML text may come to when its aliases are followed.
const maxExpanded = 100_000

// yamlSyntax is YAML of a single document.
type yamlSyntax struct{}

// parse returns the tree of a YAML text without byte order mark. A text without any document
// (empty, or comments alone) is an empty value.
func (yamlSyntax) parse(src []byte) (*node, *fileError) {
	t := &yamlTree{
		src:   src,
		index: newTextIndex(src, yamlLineStarts(src)),
		nodes: map[*yaml.Node]*node{},
	}
	loader, err := yaml.NewLoader(bytes.NewReader(src))
	if err != nil {
		return nil, wholeFile(CodeFileUnparsable, checkPlace, "setting up the YAML reader: %v", err)
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF):
		return &node{kind: nullNode, start: len(src), end: len(src), size: 1}, nil
	case err != nil:
		return nil, t.loadError(err)
	case len(doc.Content) != 1:
		const fix = "write keys and values, such as mcp: {}"
		return nil, wholeFile(CodeFileUnparsable, fix, "this is not a YAML document")
	}
	switch err := loader.Load(&second); {
	case err == nil:
		return nil, &fileError{
			CodeFileUnparsable, t.index.offset(second.Line, second.Column),
			"a second YAML document starts here", "keep one document: remove the --- line",
		}
	case !errors.Is(err, io.EOF):
		return nil, t.loadError(err)
	}
	root := t.node(doc.Content[0], 0, -1)
	if t.failed != nil {
		return nil, t.failed
	}
	return root, nil
}

// yamlTree converts the nodes of the YAML library, which know where they start and not where
// they end.
type yamlTree struct {
	src      []byte
	index    textIndex // of src, with lines as the library counts them
	nodes    map[*yaml.Node]*node
	expanded int        // nodes that aliases stand for
	failed   *fileError // the first thing that is wrong
}

// yamlLineStarts returns the offsets at which lines start as YAML 1.1 counts them (section 5.4
// of its specification): after LF, CR LF, CR, NEL, LS and PS.
func yamlLineStarts(src []byte) []int {
	starts := []int{0}
	for i := 0; i < len(src); {
		r, n := utf8.DecodeRune(src[i:])
		i += n
		switch r {
		case '\r':
			if i < len(src) && src[i] == '\n' {
				continue
			}
			starts = append(starts, i)
		case '\n', '\u0085', '\u2028', '\u2029':
			starts = append(starts, i)
		}
	}
	return starts
}

// loadError turns the library's error into a place and a message.
func (t *yamlTree) loadError(err error) *fileError {
	ferr := wholeFile(CodeFileUnparsable, checkPlace, "this is not YAML")
	lerr, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return ferr
	}
	ferr.message = "this is not YAML: " + shorten(lerr.Message)
	switch {
	case lerr.Mark.Line > 0:
		ferr.offset = t.index.offset(lerr.Mark.Line, lerr.Mark.Column)
	case lerr.ContextMark.Line > 0:
		ferr.offset = t.index.offset(lerr.ContextMark.Line, lerr.ContextMark.Column)
	default:
		ferr.offset = bytes.IndexFunc(t.src, isYAMLControl)
	}
	ferr.fix = yamlFix(lerr.Message)
	return ferr
}

// yamlFix returns what to do about the mistakes that people make most.
func yamlFix(message string) string {
	switch {
	case strings.Contains(message, "cannot start any token"):
		return "indent with spaces, not tabs, and quote text that starts with a special character"
	case strings.Contains(message, "mapping values are not allowed"):
		return "check the indentation, and quote text that holds a colon and a space"
	case strings.Contains(message, "could not find expected ':'"):
		return "write key: value, with a space after the colon"
	case strings.Contains(message, "control characters"):
		return "remove the character, or write it as an escape in double quotes"
	case strings.Contains(message, "did not find expected"):
		return "check the indentation, and that each quote, bracket and brace is closed"
	case strings.Contains(message, "unknown anchor"):
		return "write &name before the value that is meant, further up; quote text that starts with *"
	case strings.Contains(message, "unexpected end of stream"):
		return "close the quote, bracket or brace that is open here"
	}
	return checkPlace
}

// isYAMLControl reports whether YAML forbids a character.
func isYAMLControl(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != '\u0085'
}

// fail keeps the first thing that is wrong.
func (t *yamlTree) fail(offset int, fix, format string, args ...any) {
	if t.failed == nil {
		t.failed = &fileError{CodeFileUnparsable, offset, fmt.Sprintf(format, args...), fix}
	}
}

// node converts y, which stands depth levels deep in a block that is indented by indent spaces
// (-1 at the top). It returns a usable node in any case; t.failed says whether it counts.
func (t *yamlTree) node(y *yaml.Node, depth, indent int) *node {
	if y.Kind == yaml.AliasNode {
		return t.alias(y)
	}
	n := &node{start: t.index.offset(y.Line, y.Column), size: 1, end: -1}
	if depth > maxDepth {
		t.fail(n.start, tooDeep, "values are nested more than %d levels deep", maxDepth)
	}
	if t.failed != nil {
		return n
	}
	empty := y.Kind == yaml.ScalarNode && y.Value == "" // nothing may follow its anchor or tag
	if y.Anchor != "" || y.Style&yaml.TaggedStyle != 0 {
		n.start = t.skipProperties(n.start, empty)
	}
	switch y.Kind {
	case yaml.MappingNode:
		t.addMembers(n, y, depth)
	case yaml.SequenceNode:
		t.addItems(n, y, depth)
	default:
		n.kind, n.text = scalarKind(y), y.Value
		n.end = t.scalarEnd(y, n.start, indent)
	}
	if y.Kind != yaml.ScalarNode && !isPlainCollection(y) {
		n.kind = taggedNode
	}
	if n.end < n.start {
		n.end = -1 // what was read on was not what it looked like
	}
	t.nodes[y] = n
	return n
}

// scalarKind returns what a scalar is by its resolved tag. A date is text here.
func scalarKind(y *yaml.Node) kind {
	switch y.ShortTag() {
	case "!!str", "!!timestamp", "!!merge":
		return stringNode
	case "!!int", "!!float":
		return numberNode
	case "!!bool":
		return boolNode
	case "!!null":
		return nullNode
	}
	return taggedNode
}

// isPlainCollection reports whether a mapping or sequence has no tag that changes its meaning.
func isPlainCollection(y *yaml.Node) bool {
	tag := y.ShortTag()
	return tag == "!!map" || tag == "!!seq"
}

// alias returns a copy of the node that y stands for, placed where y stands. What is below it
// keeps its own places.
func (t *yamlTree) alias(y *yaml.Node) *node {
	start := t.index.offset(y.Line, y.Column)
	target, ok := t.nodes[y.Alias]
	if !ok {
		t.fail(start, "write the value out", "the alias %q stands inside the value that it stands for", y.Value)
		return &node{start: start, end: start, size: 1}
	}
	if t.expanded += target.size; t.expanded > maxExpanded {
		t.fail(start, "repeat less", "aliases expand to more than %d values", maxExpanded)
		return &node{start: start, end: start, size: 1}
	}
	n := *target
	n.start, n.end = start, start+len("*")+len(y.Value)
	return &n
}

func (t *yamlTree) addItems(n *node, y *yaml.Node, depth int) {
	n.kind, n.flow, n.end = listNode, y.Style&yaml.FlowStyle != 0, n.start
	indent := t.column(n.start)
	for _, content := range y.Content {
		item := t.node(content, depth+1, indent)
		n.size += item.size
		n.items = append(n.items, item)
		n.end = item.end
	}
	t.closeCollection(n)
}

func (t *yamlTree) addMembers(n *node, y *yaml.Node, depth int) {
	n.kind, n.flow, n.end = mapNode, y.Style&yaml.FlowStyle != 0, n.start
	var merges []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := t.node(y.Content[i], depth+1, -1)
		if i == 0 && !n.flow {
			n.start = key.start
		}
		value := t.node(y.Content[i+1], depth+1, t.column(key.start))
		n.size += value.size
		n.end = value.end
		if y.Content[i].ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		n.members = append(n.members, member{
			key: key.text, value: value, keyStart: key.start, keyEnd: key.end,
			invalid: key.kind == listNode || key.kind == mapNode || key.kind == taggedNode,
		})
	}
	t.closeCollection(n)
	t.merge(n, merges)
}

// merge adds what merge keys (<<, the YAML 1.1 merge type) bring: the members of a map, or of
// each map of a list, that the map does not have itself. Earlier ones win.
func (t *yamlTree) merge(n *node, sources []*node) {
	if len(sources) == 0 {
		return
	}
	have := map[string]bool{}
	for _, m := range n.members {
		have[m.key] = true
	}
	for len(sources) > 0 {
		source := sources[0]
		sources = sources[1:]
		switch source.kind {
		case listNode:
			sources = append(slices.Clone(source.items), sources...)
		case mapNode:
			for _, m := range source.members {
				if !have[m.key] {
					have[m.key], m.merged = true, true
					n.members = append(n.members, m)
				}
			}
		default:
			t.fail(source.start, "write <<: *name, where &name stands before a map",
				"a merge key takes a map or a list of maps")
		}
	}
}

// column returns how many bytes stand before offset on its line.
func (t *yamlTree) column(offset int) int {
	return offset - t.index.lineOf(offset)
}

// shorten cuts a text that came from a file or a library to a length that fits a message.
func shorten(s string) string {
	const limit = 200
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
