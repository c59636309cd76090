// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal, where people read.
func isTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// printable makes text of a server harmless on a terminal: control characters,
// with which it could draw over what garra says, and those that turn the
// direction of text become spaces. A tab stays.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return ' '
	}, text)
}

// printableLines is printable for text of several lines. All but the first are
// indented, so that none of them passes for a line of garra's own.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n  ")
}

// result is text of a server that a command was asked for: exactly as it is,
// but on a terminal without control characters.
func (g *globals) result(text string) string {
	if !isTerminal(g.out) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// writeJSON prints a value as indented JSON.
func (g *globals) writeJSON(value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(g.out, printableJSON(text.String()))
	return err
}

// printableJSON escapes what a JSON text may hold and a terminal may not get.
// The text means the same afterwards: such characters only stand in strings.
func printableJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || unicode.IsGraphic(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// A jsonLog takes JSON, and escapes what a terminal may not get.
type jsonLog struct{ io.Writer }

// Write implements io.Writer. It gets one event at a time.
func (l jsonLog) Write(event []byte) (int, error) {
	if _, err := io.WriteString(l.Writer, printableJSON(string(event))); err != nil {
		return 0, err
	}
	return len(event), nil
}

// count is a number of things, in words: "1 file", "2 files".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
