// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal, where people read.
func isTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// A table is the output of a list: aligned columns on a terminal, lines of
// tab-separated values elsewhere. No cell breaks the line that it is in.
type table struct {
	out      io.Writer
	terminal bool
	aligned  *tabwriter.Writer // of a terminal
	err      error             // the first one of writing
}

// table returns a table whose header is shown on a terminal only; there is none
// without names.
func (g *globals) table(header ...string) *table {
	t := &table{out: g.out, terminal: isTerminal(g.out)}
	if t.terminal {
		t.aligned = tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
		t.out = t.aligned
		if len(header) > 0 {
			t.row(header...)
		}
	}
	return t
}

// row writes one line.
func (t *table) row(cells ...string) {
	clean := make([]string, len(cells))
	for i, cell := range cells {
		clean[i] = strings.ReplaceAll(printable(cell), "\t", " ")
		if t.terminal && i < len(cells)-1 {
			clean[i] = shorten(clean[i])
		}
	}
	if _, err := fmt.Fprintln(t.out, strings.Join(clean, "\t")); err != nil && t.err == nil {
		t.err = err
	}
}

// shorten takes the middle out of a cell that would push those after it, in every
// line, to where nobody finds them. The beginning and the end tell names apart.
func shorten(cell string) string {
	const most, end = 40, 16
	runes := []rune(cell)
	if len(runes) <= most {
		return cell
	}
	return string(runes[:most-end-1]) + "…" + string(runes[len(runes)-end:])
}

// text cuts what is long on a terminal, to one line of a bearable length.
func (t *table) text(s string) string {
	const most = 80
	if runes := []rune(s); t.terminal && len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// flush writes what is left, and returns the first error of all.
func (t *table) flush() error {
	if t.aligned != nil && t.err == nil {
		t.err = t.aligned.Flush()
	}
	return t.err
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
