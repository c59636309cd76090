// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"sort"
)

// textIndex converts between byte offsets and lines and columns of a text. It answers in a time
// that does not depend on how long the lines are: a file may be one line of megabytes.
type textIndex struct {
	text   []byte
	starts []int // offsets at which lines start
	// counts holds how many characters start before each block of the text.
	counts []int
}

// blockSize is how many bytes of text are counted at a time.
const blockSize = 512

// newTextIndex returns the index of a text in UTF-8 whose lines start at the offsets.
func newTextIndex(text []byte, starts []int) textIndex {
	x := textIndex{text: text, starts: starts, counts: make([]int, 0, len(text)/blockSize+1)}
	total := 0
	for block := 0; block <= len(text); block += blockSize {
		x.counts = append(x.counts, total)
		total += countStarts(text[block:min(block+blockSize, len(text))])
	}
	return x
}

// countStarts returns how many characters start in a piece of text.
func countStarts(text []byte) int {
	n := 0
	for _, c := range text {
		if isStart(c) {
			n++
		}
	}
	return n
}

// isStart reports whether a byte is the first one of a character in UTF-8.
func isStart(c byte) bool { return c&0xc0 != 0x80 }

// before returns how many characters start before an offset.
func (x textIndex) before(offset int) int {
	block := offset / blockSize
	return x.counts[block] + countStarts(x.text[block*blockSize:offset])
}

// place returns the line and column of an offset, both from 1.
func (x textIndex) place(offset int) (line, column int) {
	offset = min(offset, len(x.text))
	line = sort.SearchInts(x.starts, offset+1)
	return line, x.before(offset) - x.before(x.starts[line-1]) + 1
}

// offset returns the offset of a line and column, both from 1, or the end of the text.
func (x textIndex) offset(line, column int) int {
	if line < 1 || line > len(x.starts) {
		return len(x.text)
	}
	want := x.before(x.starts[line-1]) + max(column, 1) - 1 // characters before the offset
	block := sort.SearchInts(x.counts, want+1) - 1
	offset, seen := block*blockSize, x.counts[block]
	for ; offset < len(x.text); offset++ {
		if isStart(x.text[offset]) {
			if seen == want {
				break
			}
			seen++
		}
	}
	return offset
}

// lineOf returns where the line of an offset starts.
func (x textIndex) lineOf(offset int) int {
	return x.starts[sort.SearchInts(x.starts, offset+1)-1]
}

// lineStarts returns the offset of each line. A line ends with LF, CR LF or a lone CR.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' || c == '\r' && !bytes.HasPrefix(data[i+1:], []byte("\n")) {
			starts = append(starts, i+1)
		}
	}
	return starts
}

// position returns the place of an offset; a negative one means the whole file.
func (s *source) position(offset int) Position {
	if offset < 0 {
		return Position{File: s.name}
	}
	line, column := s.index.place(offset)
	return Position{File: s.name, Line: line, Column: column}
}
