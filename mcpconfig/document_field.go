// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SetField sets one field of a server's entry, or a part of one: "timeoutSecs", "env.TOKEN",
// "sandbox.mode", "args[2]". The value is anything that encoding/json can write. Where the entry
// has the field under another of its names, that name stays, and "disabled" turns into the
// opposite "enabled".
func (d *Document) SetField(server, field string, value any) error {
	if err := d.setField(server, field, value); err != nil {
		return fmt.Errorf("setting %s of server %q: %w", showPath(field), server, err)
	}
	return nil
}

// RemoveField removes a field of a server's entry, or a part of one, under whatever name it
// stands there. It does nothing when it isn't there.
func (d *Document) RemoveField(server, field string) error {
	if err := d.removeField(server, field); err != nil {
		return fmt.Errorf("removing %s of server %q: %w", showPath(field), server, err)
	}
	return nil
}

func (d *Document) setField(server, field string, value any) error {
	target, err := d.fieldTarget(server, field)
	if err != nil {
		return err
	}
	if target.inverted {
		flag, ok := value.(bool)
		if !ok {
			return fmt.Errorf("%s takes true or false", target.path[0])
		}
		value = !flag
	}
	text, err := encodeJSON(value)
	if err != nil {
		return err
	}
	parsed, err := parseValue(text)
	if err != nil {
		return err
	}
	before := d.src
	err = d.set(target.full(d, server), parsed)
	for _, key := range target.others {
		if err == nil {
			err = d.remove([]string{d.sectionKey(), server, key})
		}
	}
	if err != nil {
		d.src = before
	}
	return err
}

func (d *Document) removeField(server, field string) error {
	target, err := d.fieldTarget(server, field)
	if err != nil {
		return err
	}
	before := d.src
	paths := [][]string{target.full(d, server)}
	if len(target.path) == 1 {
		for _, key := range target.others {
			paths = append(paths, []string{d.sectionKey(), server, key})
		}
	}
	for _, path := range paths {
		if d.src.root.at(path...) == nil {
			continue
		}
		if err := d.remove(path); err != nil {
			d.src = before
			return err
		}
	}
	return nil
}

// fieldTarget is where a field stands in an entry, or should.
type fieldTarget struct {
	path     []string // below the entry
	inverted bool     // the entry has the flag under its opposite name
	others   []string // further names under which the entry has the field
}

// full returns the path from the root of the document.
func (t fieldTarget) full(d *Document, server string) []string {
	return append([]string{d.sectionKey(), server}, t.path...)
}

// fieldTarget finds the field that a path such as env.TOKEN or args[2] names.
func (d *Document) fieldTarget(server, path string) (fieldTarget, error) {
	if err := d.checkServer(server); err != nil {
		return fieldTarget{}, err
	}
	head, rest := splitPath(path)
	f := fieldOf(head)
	if f == nil {
		return fieldTarget{}, errors.New("unknown field")
	}
	t := fieldTarget{path: append([]string{head}, rest...)}
	entry := d.section().get(server)
	found := false
	for _, m := range entry.children() {
		switch {
		case m.invalid || !slices.Contains(f.keys(), m.key):
		case !found:
			found = true
			t.path[0] = m.key
			t.inverted = f.opposite != "" && (m.key == f.opposite) != (head == f.opposite)
		case m.key != t.path[0]:
			t.others = append(t.others, m.key)
		}
	}
	return t, nil
}

// splitPath takes a field path apart. What follows env. or headers. is one name, whatever is
// in it. An item of a list is a step of its own, in brackets.
func splitPath(path string) (head string, rest []string) {
	head = path
	if i := strings.IndexAny(path, ".["); i >= 0 {
		head, path = path[:i], path[i:]
	} else {
		return head, nil
	}
	if name, ok := strings.CutPrefix(path, "."); ok {
		if head != "sandbox" && head != "oauth" {
			return head, []string{name}
		}
		key, index, found := strings.Cut(name, "[")
		rest = append(rest, key)
		if !found {
			return head, rest
		}
		path = "[" + index
	}
	return head, append(rest, path)
}

// itemIndex returns the index that a step such as [2] names.
func itemIndex(step string) (int, bool) {
	digits, ok := strings.CutPrefix(step, "[")
	digits, ok2 := strings.CutSuffix(digits, "]")
	index, err := strconv.Atoi(digits)
	return index, ok && ok2 && err == nil && index >= 0
}

// encodeJSON writes a value as JSON with <, > and & as they are.
func encodeJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encoding the value: %w", err)
	}
	return b.Bytes(), nil
}

// parseValue parses a JSON value that is to be put into a document.
func parseValue(text []byte) (*node, error) {
	if ferr := checkText(text); ferr != nil {
		return nil, errors.New("parsing the value: not valid text")
	}
	value, ferr := jsonSyntax{}.parse(text)
	if ferr != nil {
		return nil, fmt.Errorf("parsing the value: %s", ferr.message)
	}
	return value, nil
}
