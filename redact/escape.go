// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscape is the length of the longest escape: two halves of a character
// beyond the first plane.
const maxEscape = len(`\ud83d\ude00`)

// opens tells whether b begins an escape.
func opens(b byte) bool { return b == '\\' || b == '%' || b == '&' }

// A verdict says how far an escape is.
type verdict int

const (
	incomplete verdict = iota
	complete
	invalid
)

// unescape returns the bytes that an escape stands for: of JSON and most
// languages (\n, \u003c, \x3c), of URLs (%3C) or of HTML and XML (&lt;, &#60;).
// A backslash before any other character stands for that, as in a shell. Dst is
// where the result is appended.
func unescape(dst, escape []byte) ([]byte, verdict) {
	switch escape[0] {
	case '\\':
		return unescapeBackslash(dst, escape[1:])
	case '%':
		value, v := hexadecimal(escape[1:], 2)
		return append(dst, byte(value)), v
	default:
		return unescapeEntity(dst, string(escape[1:]))
	}
}

// undone returns text with its escapes undone once.
func undone(text string) string {
	if !strings.ContainsAny(text, openers) {
		return text
	}
	var plain []byte
	for at := 0; at < len(text); {
		var n int
		plain, n = undoOne(plain, text[at:])
		at += n
	}
	return string(plain)
}

// undoOne adds to dst what the first escape or byte of text stands for, and
// returns how long that is.
func undoOne(dst []byte, text string) ([]byte, int) {
	if opens(text[0]) {
		for n := 1; n <= min(len(text), maxEscape); n++ {
			value, v := unescape(nil, []byte(text[:n]))
			if v == complete {
				return append(dst, value...), n
			}
			if v == invalid {
				break
			}
		}
	}
	return append(dst, text[0]), 1
}

func unescapeBackslash(dst, text []byte) ([]byte, verdict) {
	if len(text) == 0 {
		return dst, incomplete
	}
	switch text[0] {
	case 'x':
		value, v := hexadecimal(text[1:], 2)
		return append(dst, byte(value)), v
	case 'u':
		return unescapeUnicode(dst, text[1:])
	case 'U':
		value, v := hexadecimal(text[1:], 8)
		return utf8.AppendRune(dst, rune(value)), v
	}
	return append(dst, unescapeLetter(text[0])), complete
}

// unescapeLetter returns what a backslash and a letter stand for.
func unescapeLetter(b byte) byte {
	switch b {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return b
}

// unescapeUnicode takes the text after \u.
func unescapeUnicode(dst, text []byte) ([]byte, verdict) {
	first, v := hexadecimal(text[:min(len(text), 4)], 4)
	if v != complete || !utf16.IsSurrogate(rune(first)) {
		return utf8.AppendRune(dst, rune(first)), v
	}
	const between = `\u`
	rest := text[4:]
	if n := min(len(rest), len(between)); string(rest[:n]) != between[:n] {
		return dst, invalid
	} else if n < len(between) {
		return dst, incomplete
	}
	second, v := hexadecimal(rest[len(between):], 4)
	return utf8.AppendRune(dst, utf16.DecodeRune(rune(first), rune(second))), v
}

// hexadecimal returns the value of digits, of which there are to be n.
func hexadecimal(digits []byte, n int) (value uint32, v verdict) {
	for _, b := range digits {
		digit, ok := hexDigit(b)
		if !ok {
			return 0, invalid
		}
		value = value<<4 | digit
	}
	if len(digits) < n {
		return 0, incomplete
	}
	return value, complete
}

func hexDigit(b byte) (uint32, bool) {
	switch {
	case b >= '0' && b <= '9':
		return uint32(b - '0'), true
	case b >= 'a' && b <= 'f':
		return uint32(b-'a') + 10, true
	case b >= 'A' && b <= 'F':
		return uint32(b-'A') + 10, true
	}
	return 0, false
}

// unescapeEntity takes the text after the ampersand.
func unescapeEntity(dst []byte, text string) ([]byte, verdict) {
	if digits, ok := strings.CutPrefix(text, "#"); ok {
		return unescapeReference(dst, digits)
	}
	for _, entity := range [...]struct{ name, value string }{
		{"amp;", "&"}, {"lt;", "<"}, {"gt;", ">"}, {"quot;", `"`}, {"apos;", "'"},
	} {
		if text == entity.name {
			return append(dst, entity.value...), complete
		}
		if strings.HasPrefix(entity.name, text) {
			return dst, incomplete
		}
	}
	return dst, invalid
}

// unescapeReference takes the text after &#: a number and a semicolon.
func unescapeReference(dst []byte, text string) ([]byte, verdict) {
	digits, closed := strings.CutSuffix(text, ";")
	base, most := 10, len("1114111")
	if after, ok := strings.CutPrefix(strings.ToLower(digits), "x"); ok {
		digits, base = after, 16
	}
	if digits == "" && !closed {
		return dst, incomplete
	}
	value, err := strconv.ParseUint(digits, base, 32)
	switch {
	case err != nil || len(digits) > most:
		return dst, invalid
	case closed:
		return utf8.AppendRune(dst, rune(value)), complete
	}
	return dst, incomplete
}
