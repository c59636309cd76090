// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
)

// entry is one server's entry before it is decoded.
type entry struct {
	src    *source
	name   string
	member member
	// again is where the section has the name once more, 0 for nowhere: nothing says which of the
	// two is meant, so neither is used.
	again int
}

// decoder turns one entry into a server and reports what is wrong with it.
type decoder struct {
	*loader
	entry  entry
	server *Server
	failed bool // an error was reported
	// given holds, by documented name, the keys under which fields were given.
	given map[string]member
}

// decode returns the server that the entry describes, and whether it has no error.
func (l *loader) decode(e entry) (server *Server, valid bool) {
	origin := e.src.position(e.member.keyStart)
	d := &decoder{
		loader: l,
		entry:  e,
		server: NewServer(e.name, origin, l.settings),
		given:  map[string]member{},
	}
	d.server.broken = map[string]bool{}
	d.server.digest = e.digest()
	if value := e.member.value; value.kind != mapNode {
		d.report(e.member.keyStart, CodeServerNotMap,
			"write the server's fields in it, at least command or url",
			"the entry is %s, not a map of fields", value.kind.noun())
		d.breaks("command", "url", "type")
		d.server.Transport = Stdio
		return d.server, false
	}
	d.checkKeys(e.member.value, "")
	for _, m := range e.member.value.members {
		d.decodeMember(m)
	}
	d.validate()
	return d.server, !d.failed
}

// breaks notes that fields can't be used, so that nothing is concluded from them.
func (d *decoder) breaks(fields ...string) {
	for _, name := range fields {
		d.server.broken[name] = true
	}
}

// usable returns a field that was given and can be used.
func (d *decoder) usable(name string) (m member, ok bool) {
	m, ok = d.given[name]
	return m, ok && !d.server.broken[name]
}

// digest is a fingerprint of the entry's bytes and, for what aliases and merge keys bring from
// elsewhere, of its tree.
func (e entry) digest() string {
	h := sha256.New()
	value := e.member.value
	if value.end >= value.start {
		h.Write(e.src.data[value.start:value.end])
	}
	value.walk(func(n *node) {
		fmt.Fprintf(h, "\x00%d %q", n.kind, n.text)
		for _, m := range n.members {
			fmt.Fprintf(h, " %q", m.key)
		}
	})
	return hex.EncodeToString(h.Sum(nil))
}

// report adds a finding about the entry. An Error makes the entry fail.
func (d *decoder) report(offset int, code Code, fix, format string, args ...any) {
	if code.Severity() == Error {
		d.failed = true
	}
	d.loader.report(spot{d.entry.src, offset, d.entry.name}, code, fix, format, args...)
}

// place remembers where a value stands.
func (d *decoder) place(path string, n *node) {
	d.server.places[path] = d.entry.src.position(n.start)
}

// checkKeys reports keys that a map of the entry has twice, and keys that aren't text.
func (d *decoder) checkKeys(n *node, path string) {
	checkKeys(d.entry.src, n, path, d.report)
}

// decodeMember decodes one key of the entry.
func (d *decoder) decodeMember(m member) {
	if m.invalid || isNote(m.key) {
		return
	}
	f, ok := d.index[m.key]
	if !ok {
		d.reportUnknown(m)
		return
	}
	if m.value.kind == nullNode {
		return // as if it were not there
	}
	first, again := d.given[f.name]
	if !again {
		d.given[f.name] = m
		d.place(f.name, m.value)
		if !d.decodeValue(f, m, d.server) {
			d.breaks(f.name)
		}
		return
	}
	if first.key == m.key || d.server.broken[f.name] {
		return // reported as a duplicate, or there is nothing to compare with
	}
	d.compareSpellings(f, first, m)
}

// compareSpellings reports a field that is given under two names.
func (d *decoder) compareSpellings(f *field, first, again member) {
	scratch := NewServer("", Position{}, d.settings)
	if !d.decodeValue(f, again, scratch) {
		return
	}
	if reflect.DeepEqual(f.bind(scratch), f.bind(d.server)) {
		d.report(again.keyStart, CodeFieldRepeated, "keep one of them",
			"%s and %s are the same field", first.key, again.key)
		return
	}
	d.breaks(f.name)
	d.report(again.keyStart, CodeFieldConflict, "keep the one that is meant",
		"%s and %s are the same field and say different things", first.key, again.key)
}

// reportUnknown reports a key that is no field.
func (d *decoder) reportUnknown(m member) {
	if meaning := foreignKey(m.key); meaning != "" {
		d.report(m.keyStart, CodeKeyForeign, "it can stay, or be removed",
			"garra does not use %s: %s", m.key, meaning)
		return
	}
	var known []string
	for _, f := range d.table {
		known = append(known, f.spelling(d.entry.src.name))
		known = append(known, f.keys()...)
	}
	d.report(m.keyStart, CodeKeyUnknown, didYouMean(m.key, known),
		"unknown key %q", shorten(m.key))
}
