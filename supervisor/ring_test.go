// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/redact"
)

func TestRingKeepsTheLastLines(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty lines": "", "short lines": "x", "long lines": strings.Repeat("y", maxLineBytes),
	} {
		r := newRing()
		const n = 20_000
		for range n {
			r.add(text)
		}
		lines, _ := r.after(0)
		most := ringBytes / (len(text) + lineOverhead)
		if len(lines) != most || r.last() != n || lines[len(lines)-1].Seq != n {
			t.Errorf("%s: %d lines, want %d; the last is %d", name, len(lines), most, lines[len(lines)-1].Seq)
		}
		for i, line := range lines {
			if line.Seq != lines[0].Seq+uint64(i) || line.Text != text || line.Time.IsZero() {
				t.Fatalf("%s: line %d is %+v", name, i, line)
			}
		}
	}
}

func TestRingAfter(t *testing.T) {
	t.Parallel()
	r := newRing()
	if lines, _ := r.after(0); len(lines) != 0 {
		t.Errorf("%v", lines)
	}
	_, more := r.after(0)
	select {
	case <-more:
		t.Error("there is no more")
	default:
	}
	for i := range 5 {
		r.add(fmt.Sprint(i + 1))
	}
	<-more
	for seq, want := range map[uint64]string{0: "1 2 3 4 5", 3: "4 5", 5: "", 99: ""} {
		lines, _ := r.after(seq)
		var texts []string
		for _, line := range lines {
			texts = append(texts, line.Text)
		}
		if got := strings.Join(texts, " "); got != want {
			t.Errorf("after %d: %q, want %q", seq, got, want)
		}
	}
	lines, _ := r.after(0)
	lines[0].Text = "changed"
	if again, _ := r.after(0); again[0].Text != "1" {
		t.Error("the lines are shared")
	}
}

func TestRingTail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		lines []string
		seq   uint64
		want  string
	}{
		{"none", nil, 0, ""},
		{"of an earlier run", []string{"old", "older"}, 2, ""},
		{"one", []string{"old", "new"}, 1, "new"},
		{"the last five", strings.Fields("a b c d e f g"), 0, "c\nd\ne\nf\ng"},
		{"blank lines don't count", []string{"a", "", "  ", "b", "\t"}, 0, "a\nb"},
		{"indents are taken off", []string{"    import mcp", "Error: x"}, 0, "import mcp\nError: x"},
		{
			"long lines",
			[]string{"a", strings.Repeat("b", 900), strings.Repeat("c", 900)},
			0,
			strings.Repeat("c", 900),
		},
		{"one very long line", []string{"a", strings.Repeat("b", 5000)}, 0, strings.Repeat("b", 5000)},
	} {
		r := newRing()
		for _, line := range test.lines {
			r.add(line)
		}
		if got := strings.Join(r.tail(test.seq), "\n"); got != test.want {
			t.Errorf("%s: %.80q, want %.80q", test.name, got, test.want)
		}
	}
}

func TestRingDrain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("z", maxLineBytes)
	for _, test := range []struct {
		name, input string
		want        []string
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"CR LF and blanks", "a\r\n\r\n  b \n", []string{"a", "", "  b "}},
		{"as long as can be", long[:maxLineBytes-1] + "\nb\n", []string{long[:maxLineBytes-1], "b"}},
		{"too long", long + "rest\nb\n", []string{long, "b"}},
		{"far too long", strings.Repeat(long, 5) + "rest\nb\n", []string{long, "b"}},
		{"too long, no end", strings.Repeat(long, 3), []string{long}},
		{"not UTF-8", "a\xff\x00b\n", []string{"a\xff\x00b"}},
	} {
		for way, reader := range map[string]io.Reader{
			"at once":      strings.NewReader(test.input),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.input)),
			"then broken":  io.MultiReader(strings.NewReader(test.input), iotest.ErrReader(io.ErrClosedPipe)),
		} {
			r := newRing()
			var got []string
			r.drain(reader, new(redact.Set), func(line string) { got = append(got, line) })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, %s: %s", test.name, way, diff)
			}
			if int(r.last()) != len(got) {
				t.Errorf("%s, %s: %d lines in the ring", test.name, way, r.last())
			}
		}
	}
}
