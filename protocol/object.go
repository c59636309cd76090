// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// errNotObject is returned for JSON that is no object.
var errNotObject = errors.New("not a JSON object")

// A Member is one member of an [Object].
type Member struct {
	Name  string
	Value Raw
	quote Raw // the name as it stood
}

// An Object is a JSON object of which members can be read and replaced without
// touching the others: order, names and values stay as they were written.
// The zero Object is {}. It is not safe for concurrent use.
type Object struct{ Members []Member }

// ParseObject reads an object from a server; of two equal members the last
// counts. Values alias raw.
func ParseObject(raw Raw) (*Object, error) {
	members, err := readMembers(raw,
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return &Object{members}, err
}

// ParseObjectStrict reads an object from a client. It refuses equal member
// names at any depth and, at the object's own level, names that differ only in
// case. Values alias raw where that has no blanks, else they are written again
// from their tokens.
func ParseObjectStrict(raw Raw) (*Object, error) {
	line, err := onLine(raw)
	if err != nil {
		return nil, err
	}
	return parseLine(line)
}

// parseLine is ParseObjectStrict of what onLine returned.
func parseLine(line Raw) (*Object, error) {
	members, err := readMembers(line, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	if err := distinct(members); err != nil {
		return nil, err
	}
	return &Object{members}, nil
}

// onLine returns a JSON value without blanks: itself when it has none, as most
// clients write it, since a copy of a large one costs much. What is not copied is
// not looked at either.
func onLine(raw Raw) (Raw, error) {
	for text := []byte(raw); len(text) > 0; {
		quote := bytes.IndexByte(text, '"')
		if quote < 0 {
			quote = len(text)
		}
		if bytes.ContainsAny(text[:quote], " \t\r\n") {
			return Recode(raw)
		}
		text = afterString(text[quote:])
	}
	return raw, nil
}

// distinct refuses names that are equal under Unicode case folding, as some
// decoders take one for the other.
func distinct(members []Member) error {
	if len(members) <= fewMembers {
		return distinctFew(members)
	}
	seen := make(map[string]string, len(members))
	for i := range members {
		name := members[i].Name
		if other, twice := seen[fold(name)]; twice {
			return fmt.Errorf("members %.60q and %.60q differ only in case", other, name)
		}
		seen[fold(name)] = name
	}
	return nil
}

// fewMembers is up to how many names comparing each with each is cheaper.
const fewMembers = 8

func distinctFew(members []Member) error {
	for i := range members {
		for j := range i {
			if strings.EqualFold(members[i].Name, members[j].Name) {
				return fmt.Errorf("members %.60q and %.60q differ only in case", members[j].Name, members[i].Name)
			}
		}
	}
	return nil
}

// fold maps names that strings.EqualFold holds equal to one string: each rune
// becomes the least of those that it folds to.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// Recode writes a JSON value again from its tokens, on one line. Order and the
// text of numbers and strings stay; equal member names are an error.
func Recode(raw Raw) (Raw, error) {
	return jsontext.AppendFormat(make(Raw, 0, len(raw)), raw,
		jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true))
}

// readMembers splits an object into its members.
func readMembers(raw []byte, opts ...jsontext.Options) ([]Member, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), opts...)
	if dec.PeekKind() != '{' {
		return nil, errNotObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	members := make([]Member, 0, 4)
	for dec.PeekKind() != '}' {
		quote, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		name, err := Text(quote)
		if err != nil {
			return nil, err
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if len(members) == maxMembers {
			return nil, &CrowdedError{"members", maxMembers}
		}
		members = append(members, Member{Name: name, Value: value, quote: quote})
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(dec.UnreadBuffer()); len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes follow the object", len(rest))
	}
	return members, nil
}

// Get returns the value of a member, nil when there is none.
func (o *Object) Get(name string) Raw {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Name == name {
			return o.Members[i].Value
		}
	}
	return nil
}

// Set replaces the value of a member, or adds it as the last one.
func (o *Object) Set(name string, value Raw) {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Name == name {
			o.Members[i].Value = value
			return
		}
	}
	o.Members = append(o.Members, Member{Name: name, Value: value})
}

// Delete takes every member of that name out.
func (o *Object) Delete(name string) {
	kept := o.Members[:0:0]
	for _, m := range o.Members {
		if m.Name != name {
			kept = append(kept, m)
		}
	}
	o.Members = kept
}

// Raw returns the object as JSON text.
func (o *Object) Raw() Raw {
	size := 2
	for i := range o.Members {
		size += len(o.Members[i].Name) + len(o.Members[i].Value) + 6
	}
	dst := append(make(Raw, 0, size), '{')
	for i := range o.Members {
		if i > 0 {
			dst = append(dst, ',')
		}
		if o.Members[i].quote != nil {
			dst = append(dst, o.Members[i].quote...)
		} else {
			dst, _ = jsontext.AppendQuote(dst, o.Members[i].Name) // only replaces invalid UTF-8
		}
		dst = append(append(dst, ':'), o.Members[i].Value...)
	}
	return append(dst, '}')
}

// Elements splits a JSON array into its values, which alias raw. It returns a
// *[CrowdedError] when there are more than [MaxElements].
func Elements(raw Raw) ([]Raw, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '[' {
		return nil, errors.New("not a JSON array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var elements []Raw
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		if len(elements) == MaxElements {
			return nil, &CrowdedError{"elements", MaxElements}
		}
		elements = append(elements, v)
	}
	return elements, nil
}

// Array joins values to a JSON array.
func Array(elements []Raw) Raw {
	size := 2
	for _, e := range elements {
		size += len(e) + 1
	}
	dst := append(make(Raw, 0, size), '[')
	for i, e := range elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, ']')
}

// Text returns the string that raw is, and an error when it is none.
func Text(raw Raw) (string, error) {
	if raw.Kind() != '"' {
		return "", fmt.Errorf("%.40q is not a JSON string", raw)
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil && !bytes.Contains(s, []byte("\ufffd")) {
		return "", err
	}
	return string(s), nil
}

// Quote returns s as a JSON string.
func Quote(s string) Raw {
	raw, _ := jsontext.AppendQuote(nil, s) // invalid UTF-8 is replaced, never refused
	return raw
}
