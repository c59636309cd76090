// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// The measures of a table, in columns of the terminal.
const (
	cellGap    = 2  // between cells
	mostCell   = 40 // of a cell that others follow
	mostText   = 80 // of the last cell of a list, where the terminal doesn't say how wide it is
	leastCell  = 3  // what is left of a cell however narrow the terminal is
	leastLines = 20 // in which it is worth it to break text into lines
)

// A table is the output of a list: aligned columns on a terminal, no wider than that;
// lines of tab-separated values elsewhere. No cell breaks the line that it is in.
type table struct {
	out      io.Writer
	terminal bool
	width    int  // of the terminal; 0 for not known
	whole    bool // the last column is broken into lines instead of cut
	rows     [][]string
}

// table returns a table whose header is shown on a terminal only; there is none
// without names. What is too wide for a terminal is cut.
func (g *globals) table(header ...string) *table {
	t := &table{out: g.out, terminal: isTerminal(g.out)}
	if !t.terminal {
		return t
	}
	if f, ok := g.out.(interface{ Fd() uintptr }); ok {
		t.width, _, _ = term.GetSize(int(f.Fd())) // what doesn't tell its size has none
	}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

// pairs returns a table of names and values, whose values are whole everywhere.
func (g *globals) pairs() *table {
	t := g.table()
	t.whole = true
	return t
}

// row adds one line.
func (t *table) row(cells ...string) {
	clean := make([]string, len(cells))
	for i, cell := range cells {
		clean[i] = strings.ReplaceAll(printable(cell), "\t", " ")
	}
	t.rows = append(t.rows, clean)
}

// flush writes the table, and returns the first error of that.
func (t *table) flush() error {
	separator, widths := "\t", t.widths()
	if t.terminal {
		separator = strings.Repeat(" ", cellGap)
	}
	for _, row := range t.rows {
		for _, line := range t.lines(row, widths) {
			text := strings.Join(line, separator)
			if t.terminal {
				text = strings.TrimRight(text, " ")
			}
			if _, err := fmt.Fprintln(t.out, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// widths returns the width of each column on a terminal.
func (t *table) widths() (widths []int) {
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			if i < len(row)-1 {
				widths[i] = min(widths[i], mostCell)
			}
		}
	}
	last := len(widths) - 1
	switch {
	case last < 0:
	case t.whole:
		names := cellGap * last
		for _, width := range widths[:last] {
			names += width
		}
		if lines := t.width - names; lines >= leastLines {
			widths[last] = min(widths[last], lines)
		}
	case t.width == 0:
		widths[last] = min(widths[last], mostText)
	default:
		narrow(widths, t.width)
	}
	return widths
}

// narrow makes the widest columns less wide until all fit, of equal ones the last.
func narrow(widths []int, most int) {
	total := cellGap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for ; total > most; total-- {
		widest := slices.Max(widths)
		if widest <= leastCell {
			return
		}
		for i := len(widths) - 1; i >= 0; i-- {
			if widths[i] == widest {
				widths[i]--
				break
			}
		}
	}
}

// lines returns the cells of the lines that a row is: one, unless its last cell is
// broken into lines.
func (t *table) lines(row []string, widths []int) [][]string {
	if !t.terminal {
		return [][]string{row}
	}
	first, last := make([]string, len(row)), len(row)-1
	for i, cell := range row {
		if i < last {
			cell = shorten(cell, widths[i])
			cell += strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}
		first[i] = cell
	}
	if !t.whole {
		first[last] = cut(row[last], widths[last])
		return [][]string{first}
	}
	var lines [][]string
	for i, text := range broken(row[last], widths[last]) {
		line := slices.Clone(first)
		for j := range line[:last] {
			if i > 0 {
				line[j] = strings.Repeat(" ", widths[j])
			}
		}
		line[last] = text
		lines = append(lines, line)
	}
	return lines
}

// shorten takes the middle out of a cell that is too wide: the beginning and the end
// tell names apart, when there is room for both.
func shorten(cell string, most int) string {
	runes := []rune(cell)
	if len(runes) <= most || most < 3*leastCell {
		return cut(cell, most)
	}
	end := most * 2 / 5
	return string(runes[:most-end-1]) + "…" + string(runes[len(runes)-end:])
}

// cut takes off the end of a text that is too wide.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// broken returns a text as lines, which are no wider than that but for words that
// are: a path can be copied as it is.
func broken(text string, most int) (lines []string) {
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
