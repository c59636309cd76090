// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestTextIndex compares the index with counting from the start, and checks that offsets and
// places lead to each other.
func TestTextIndex(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "é", "☂", "😀", "\n", "\r\n", "\r", strings.Repeat("xé", 400)})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
		index := newTextIndex([]byte(text), lineStarts([]byte(text)))
		for offset := 0; offset <= len(text); offset++ {
			if offset < len(text) && !utf8.RuneStart(text[offset]) {
				continue
			}
			line, column := index.place(offset)
			start := index.starts[line-1]
			if start > offset || line < len(index.starts) && index.starts[line] <= offset {
				t.Fatalf("offset %d of %q is on line %d", offset, text, line)
			}
			if want := utf8.RuneCountInString(text[start:offset]) + 1; column != want {
				t.Fatalf("offset %d of %q is at column %d, want %d", offset, text, column, want)
			}
			if got := index.offset(line, column); got != offset {
				t.Fatalf("line %d, column %d of %q is at %d, want %d", line, column, text, got, offset)
			}
			if got := index.lineOf(offset); got != start {
				t.Fatalf("the line of offset %d starts at %d, want %d", offset, got, start)
			}
		}
		if got := index.offset(len(index.starts)+1, 1); got != len(text) {
			t.Fatalf("a line after the last is at %d", got)
		}
	})
}

// TestLongLine loads a file that is one line with many findings, for which each place would
// cost a walk over the line if there were no index.
func TestLongLine(t *testing.T) {
	for name, text := range map[string]string{
		ServersFile: `{"mcpServers": {` + strings.Repeat(`"a b": {"x y": 1},`, 50_000) + `}}`,
		GeneralFile: `{mcp: {` + strings.Repeat(`a b: {x y: 1}, `, 50_000) + `}}`,
	} {
		config := loadText(t, name, text)
		if got := len(config.Findings); got < 49_999 {
			t.Errorf("%s: %d findings", name, got)
		}
	}
}
