// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gobwas/glob"

	"github.com/garraia/garra/internal/reach"
)

// decodeValue puts the value of a field into s and reports whether it could.
func (d *decoder) decodeValue(f *field, m member, s *Server) bool {
	n := m.value
	switch p := f.bind(s).(type) {
	case *bool:
		return d.flag(p, f, m)
	case *string:
		return d.text(p, m.key, n)
	case *[]string:
		return d.list(p, f, m.key, f.name, n)
	case *map[string]string:
		return d.textMap(p, f, m)
	case *int:
		return d.count(p, f, m)
	case *float64:
		return d.number(p, f, m)
	case *time.Duration:
		return d.seconds(p, f, m)
	case *Transport:
		return d.transport(p, m)
	case *Start:
		return choose(d, p, f.choices, m.key, n)
	case *Era:
		return choose(d, p, f.choices, m.key, n)
	case *Sharing:
		return choose(d, p, f.choices, m.key, n)
	case *Tools:
		if n.kind == listNode { // as in files of other clients
			return d.wrongType(m.key, "all or search", "write the names of tools as "+
				fieldOf("allowedTools").spelling(d.entry.src.name), n)
		}
		return choose(d, p, f.choices, m.key, n)
	case *Sandbox:
		return d.sandbox(p, m)
	case *OAuth:
		return d.oauth(p, m)
	default:
		panic(fmt.Sprintf("mcpconfig: no decoder for the type of field %s", f.name))
	}
}

// wrongType reports a value of the wrong type.
func (d *decoder) wrongType(key, want, fix string, n *node) bool {
	d.report(n.start, CodeFieldType, fix, "%s must be %s, not %s", key, want, n.kind.noun())
	return false
}

// flag decodes true or false; the field's opposite name turns it round.
func (d *decoder) flag(p *bool, f *field, m member) bool {
	if m.value.kind != boolNode {
		return d.wrongType(m.key, "true or false", "write true or false, without quotes", m.value)
	}
	*p = strings.EqualFold(m.value.text, "true")
	if f.opposite != "" && m.key != f.opposite {
		*p = !*p
	}
	return true
}

// text decodes a string.
func (d *decoder) text(p *string, key string, n *node) bool {
	if n.kind != stringNode {
		return d.notText(key, n)
	}
	*p = n.text
	return d.checkNUL(key, n)
}

// notText reports a value that is not a string.
func (d *decoder) notText(key string, n *node) bool {
	fix := "put it in quotes"
	switch n.kind {
	case listNode, mapNode:
		fix = "write one string"
	case nullNode:
		fix = `write "" for an empty string, or remove it`
	case taggedNode:
		fix = "remove the tag"
	}
	return d.wrongType(key, "a string", fix, n)
}

// checkNUL reports a NUL byte, which can't be handed to a process or put on a wire.
func (d *decoder) checkNUL(key string, n *node) bool {
	if !strings.ContainsRune(n.text, 0) {
		return true
	}
	d.report(n.start, CodeFieldInvalid, "remove it", "%s holds a NUL character", key)
	return false
}

// scalar decodes text where a number or true or false is taken by its letters, as they stand.
func (d *decoder) scalar(p *string, key string, n *node) bool {
	switch n.kind {
	case stringNode, numberNode, boolNode:
		*p = n.text
		return d.checkNUL(key, n)
	}
	return d.notText(key, n)
}

// list decodes a list of strings. The key is as written, the path starts with the documented
// name of the field.
func (d *decoder) list(p *[]string, f *field, key, path string, n *node) bool {
	if n.kind != listNode {
		return d.wrongType(key, "a list of strings", `write it in brackets, as ["a", "b"]`, n)
	}
	ok := true
	texts := make([]string, len(n.items))
	for i, item := range n.items {
		index := fmt.Sprintf("[%d]", i)
		d.place(path+index, item)
		ok = d.scalar(&texts[i], key+index, item) && ok
		if f != nil && f.format == toolPatterns {
			ok = d.checkPattern(texts[i], key+index, item) && ok
		}
	}
	if ok || f == nil || f.format != toolPatterns { // who takes patterns can rely on them
		*p = texts
	}
	return ok
}

// checkPattern reports a tool name or glob that can match nothing.
func (d *decoder) checkPattern(pattern, key string, n *node) bool {
	if n.kind != stringNode && n.kind != numberNode && n.kind != boolNode {
		return true // reported as a wrong type
	}
	if pattern == "" {
		d.report(n.start, CodeToolsBadPattern, "remove it", "%s is empty", key)
		return false
	}
	if _, err := glob.Compile(pattern); err != nil {
		d.report(n.start, CodeToolsBadPattern,
			"put a backslash before a character that is meant literally",
			"%s: %q is not a glob", key, shorten(pattern))
		return false
	}
	return true
}

// textMap decodes a map of strings: env or headers.
func (d *decoder) textMap(p *map[string]string, f *field, m member) bool {
	if m.value.kind != mapNode {
		return d.wrongType(m.key, "a map of names and strings", "write it as name: value pairs", m.value)
	}
	d.checkKeys(m.value, m.key+".")
	texts := make(map[string]string, len(m.value.members))
	ok := true
	for _, item := range m.value.members {
		if item.invalid {
			continue
		}
		path := m.key + "." + item.key
		d.place(f.name+"."+item.key, item.value)
		if item.value.kind == nullNode {
			d.report(item.value.start, CodeEnvNull, `write "" for an empty value, or remove the line`,
				"%s has no value and is not set", showPath(path))
			continue
		}
		var text string
		ok = d.checkName(f.format, item) && d.scalar(&text, showPath(path), item.value) && ok
		if f.format == headerMap {
			ok = d.checkHeader(showPath(path), text, item.value) && ok
		}
		texts[item.key] = text
	}
	*p = texts
	return ok
}

// headerName is a token of RFC 9110, section 5.6.2.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// checkName reports a name that no environment variable or header can have.
func (d *decoder) checkName(format format, m member) bool {
	switch {
	case format == envMap && (m.key == "" || strings.ContainsAny(m.key, "=\x00")):
		d.report(m.keyStart, CodeEnvInvalidName, "correct the name",
			"%q can't be the name of an environment variable", shorten(m.key))
		return false
	case format == headerMap && !headerName.MatchString(m.key):
		d.report(m.keyStart, CodeHeadersInvalid, "correct the name",
			"%q can't be the name of a header", shorten(m.key))
		return false
	}
	return true
}

// checkHeader reports a header value that would break out of its line.
func (d *decoder) checkHeader(key, text string, n *node) bool {
	if strings.ContainsAny(text, "\r\n") {
		d.report(n.start, CodeHeadersInvalid, "write it in one line", "%s has a line break in it", key)
		return false
	}
	return true
}

// plainNumber is a decimal number as JSON has it. YAML has further forms, of which some mean
// different numbers to different readers (010).
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number decodes a number in the field's range.
func (d *decoder) number(p *float64, f *field, m member) bool {
	n := m.value
	if n.kind != numberNode {
		return d.wrongType(m.key, "a number", "write a number, without quotes or unit", n)
	}
	number, err := strconv.ParseFloat(n.text, 64)
	switch {
	case !plainNumber.MatchString(n.text) && !isSpecialFloat(n.text):
		d.report(n.start, CodeFieldType, "write a plain decimal number, such as 60",
			"%s is not a plain decimal number", m.key)
		return false
	case err != nil || math.IsNaN(number) || number < f.min || number > f.max:
		fix := fmt.Sprintf("write a number from %s to %s", showNumber(f.min), showNumber(f.max))
		if m.key == "timeout" {
			fix += " of seconds; other clients count milliseconds"
		}
		d.report(n.start, CodeFieldRange, fix, "%s is out of range", m.key)
		return false
	}
	*p = number
	return true
}

// isSpecialFloat reports whether YAML text is an infinity or not a number.
func isSpecialFloat(text string) bool {
	text = strings.ToLower(strings.TrimLeft(text, "+-"))
	return text == ".inf" || text == ".nan"
}

func showNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// count decodes a whole number.
func (d *decoder) count(p *int, f *field, m member) bool {
	var number float64
	if !d.number(&number, f, m) {
		return false
	}
	if number != math.Trunc(number) {
		d.report(m.value.start, CodeFieldType, "write it without a fraction",
			"%s must be a whole number", m.key)
		return false
	}
	*p = int(number)
	return true
}

// seconds decodes a duration.
func (d *decoder) seconds(p *time.Duration, f *field, m member) bool {
	var number float64
	if !d.number(&number, f, m) {
		return false
	}
	*p = time.Duration(math.Round(number * float64(time.Second)))
	if m.key == "timeout" && number >= 1000 {
		d.report(m.value.start, CodeTimeoutUnit,
			fmt.Sprintf("divide by 1000 if milliseconds were meant, else write %s",
				secondsKey(d.entry.src.name)),
			"timeout is in seconds here, and this is %s; other clients count milliseconds",
			p.Round(time.Second))
	}
	return true
}

// secondsKey is the spelling of the timeout that names its unit.
func secondsKey(file string) string {
	if isYAML(file) {
		return "timeout_secs"
	}
	return "timeoutSecs"
}

// transport decodes the type of a server.
func (d *decoder) transport(p *Transport, m member) bool {
	var word string
	if !d.text(&word, m.key, m.value) {
		return false
	}
	t, ok := transportOf(word)
	if !ok {
		d.report(m.value.start, CodeTransportUnknown, "write stdio, http or sse",
			"%s %q is not known", m.key, shorten(word))
		return false
	}
	*p = t
	return true
}

// choose decodes one of some words.
func choose[T ~string](d *decoder, p *T, choices []string, key string, n *node) bool {
	var word string
	if !d.text(&word, key, n) {
		return false
	}
	if !slices.Contains(choices, word) {
		d.report(n.start, CodeFieldChoice, "write "+strings.Join(choices, " or "),
			"%s %q is not known", key, shorten(word))
		return false
	}
	*p = T(word)
	return true
}

// sandboxModes returns the words for sandbox.mode.
func sandboxModes() []string {
	return []string{string(SandboxRequired), string(SandboxBestEffort), string(SandboxOff)}
}

// sandboxKeys returns the keys of sandbox, in the order of the documentation.
func sandboxKeys() []string { return []string{"mode", "profile", "read", "write", "network"} }

// sandboxProfiles returns the words for sandbox.profile.
func sandboxProfiles() []string { return []string{string(ProfileBrowser)} }

// networkWords returns the words for sandbox.network.
func networkWords() []string { return []string{string(NetworkNone), string(NetworkAll)} }

// sandbox decodes the sandbox of a server.
func (d *decoder) sandbox(p *Sandbox, m member) bool {
	if m.value.kind != mapNode {
		return d.wrongType(m.key, "a map", "write {mode: best-effort}, for example", m.value)
	}
	d.checkKeys(m.value, m.key+".")
	p.Asked = true
	ok := true
	for _, item := range m.value.members {
		if item.invalid || item.value.kind == nullNode {
			continue
		}
		key, path := m.key+"."+item.key, "sandbox."+item.key
		d.place(path, item.value)
		switch item.key {
		case "mode":
			ok = choose(d, &p.Mode, sandboxModes(), key, item.value) && ok
		case "profile":
			ok = choose(d, &p.Profile, sandboxProfiles(), key, item.value) && ok
		case "read":
			ok = d.list(&p.Read, nil, key, path, item.value) && ok
		case "write":
			ok = d.list(&p.Write, nil, key, path, item.value) && ok
		case "network":
			ok = d.network(&p.Network, key, path, item.value) && ok
		default:
			d.report(item.keyStart, CodeKeyUnknown,
				didYouMean(item.key, sandboxKeys()),
				"unknown key %q in %s", shorten(item.key), m.key)
		}
	}
	return ok
}

// network decodes none, all, or a list of host:port.
func (d *decoder) network(p *Network, key, path string, n *node) bool {
	if n.kind == stringNode {
		return choose(d, &p.Mode, networkWords(), key, n)
	}
	if n.kind != listNode {
		return d.wrongType(key, "none, all or a list of host:port",
			`write ["example.com:443"], for example`, n)
	}
	p.Mode = NetworkListed
	ok := d.list(&p.Hosts, nil, key, path, n)
	for i, item := range n.items {
		if item.kind != stringNode {
			continue
		}
		if _, err := reach.Listed([]string{item.text}); err != nil {
			d.report(item.start, CodeFieldInvalid, "write host:port, such as example.com:443 or *.example.com:443",
				"%s[%d] is not host:port", key, i)
			ok = false
		}
	}
	return ok
}

// plainPath is a field path that needs no quotes in a message.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// showPath returns a field path for a message, quoted unless it is plain.
func showPath(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return strconv.Quote(shorten(path))
}
