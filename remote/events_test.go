// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readEvents reads a whole stream; each event is "kind|id|data".
func readEvents(src io.Reader, limit int64) (events []string, r *eventReader, err error) {
	r = newEventReader(src, limit)
	for {
		e, err := r.next()
		if err != nil {
			return events, r, err
		}
		text := fmt.Sprintf("%s|%s|%s", e.kind, r.lastID, e.data)
		if e.size != int64(len(e.data)) {
			text += fmt.Sprintf("|%d", e.size)
		}
		events = append(events, text)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*eventBuffer)
	for _, test := range []struct {
		name, text string
		want       []string
		last       string
	}{
		{"none", "", nil, ""},
		{"one", "data: a\n\n", []string{"||a"}, ""},
		{"no blank", "data:a\n\n", []string{"||a"}, ""},
		{"two blanks", "data:  a\n\n", []string{"|| a"}, ""},
		{"all fields", "id: 1\nevent: k\ndata: a\n\n", []string{"k|1|a"}, "1"},
		{"kinds don't stay", "event: k\ndata: a\n\ndata: b\n\n", []string{"k||a", "||b"}, ""},
		{"kinds without data don't stay", "event: k\n\ndata: b\n\n", []string{"||b"}, ""},
		{"ids stay", "id: 1\ndata: a\n\ndata: b\n\n", []string{"|1|a", "|1|b"}, "1"},
		{"an id alone", "id: 1\n\n", nil, "1"},
		{"an id with empty data", "id: 1\ndata:\n\n", []string{"|1|"}, "1"},
		{"an id that is taken back", "id: 1\n\nid\n\n", nil, ""},
		{"an id with NUL", "id: 1\n\nid: a\x00b\n\n", nil, "1"},
		{"an id that no header can hold", "id: 1\n\nid: a\x1bb\n\n", nil, "1"},
		{"an id of no event", "id: 1\n\nid: 2\ndata: a", nil, "1"},
		{"comments", ": c\n:\ndata: a\n: c\n\n", []string{"||a"}, ""},
		{"unknown fields", "x: 1\nDATA: 2\ndata: a\nnothing\n\n", []string{"||a"}, ""},
		{"lines", "data: a\ndata\ndata: b\n\n", []string{"||a\n\nb"}, ""},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"||a", "||b"}, ""},
		{"CR", "data: a\r\rdata: b\rdata: c\r\r", []string{"||a", "||b\nc"}, ""},
		{"a mark", "\xef\xbb\xbfdata: a\n\n", []string{"||a"}, ""},
		{"a mark later", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"||a"}, ""},
		{"a forgotten end", "id: 1\ndata: a\n", []string{"||a"}, ""},
		{"no end at all", "data: a", nil, ""},
		{"long", "data: " + long + "\n\ndata: b\n\n", []string{"||" + long, "||b"}, ""},
		{"long lines", "data: " + long + "\ndata: " + long + "\n\n", []string{"||" + long + "\n" + long}, ""},
		{"long with CRLF", "data: " + long + "\r\n\r\ndata: b\r\n\r\n", []string{"||" + long, "||b"}, ""},
		{"a long comment", ":" + long + "\ndata: b\n\n", []string{"||b"}, ""},
		{"a long id", "id: " + long + "\ndata: b\n\n", []string{"||b"}, ""},
	} {
		for _, pieces := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader} {
			src := pieces(strings.NewReader(test.text))
			got, r, err := readEvents(src, 1<<20)
			if diff := cmp.Diff(test.want, got); diff != "" || !errors.Is(err, io.EOF) || r.lastID != test.last {
				t.Errorf("%s: last %q, %v, %.300s", test.name, r.lastID, err, diff)
			}
		}
	}
}

func TestLargeEvents(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{
		10: strings.Repeat("x", 10), 11: strings.Repeat("x", 10) + "|11", 5000: strings.Repeat("x", 10) + "|5000",
	} {
		text := "data: " + strings.Repeat("x", size) + "\n\ndata: b\n\n"
		got, _, err := readEvents(strings.NewReader(text), 10)
		if diff := cmp.Diff([]string{"||" + want, "||b"}, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%d: %v, %s", size, err, diff)
		}
	}
	many := strings.Repeat("data: x\n", 100)
	if got, _, _ := readEvents(strings.NewReader(many+"\n"), 10); len(got) != 1 || !strings.HasSuffix(got[0], "|199") {
		t.Errorf("%q", got)
	}
	_, _, err := readEvents(iotest.DataErrReader(endless{}), 10)
	if !errors.Is(err, errRunaway) {
		t.Errorf("%v", err)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'd'
	}
	return len(p), nil
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"":                              -1,
		"retry: 1500\n":                 1500 * time.Millisecond,
		"retry: 0\n":                    0,
		"retry: -1\n":                   -1,
		"retry: 1e3\n":                  -1,
		"retry: 99999999999999999999\n": -1,
	} {
		if _, r, _ := readEvents(strings.NewReader(text+"\n"), 10); r.retry != want {
			t.Errorf("%q: %v", text, r.retry)
		}
	}
}

// However a stream is cut into pieces, the same events come of it, and what is
// read is no larger than it may be.
func FuzzEvents(f *testing.F) {
	f.Add("id: 1\r\nevent: k\rdata: a\ndata: b\n\nretry: 1\n\n")
	f.Add("\xef\xbb\xbfdata: \n\r\r\n:")
	f.Fuzz(func(t *testing.T, text string) {
		whole, r, err := readEvents(strings.NewReader(text), 100)
		pieces, s, _ := readEvents(iotest.OneByteReader(strings.NewReader(text)), 100)
		if diff := cmp.Diff(whole, pieces); diff != "" || r.lastID != s.lastID || r.retry != s.retry {
			t.Errorf("%q: %v: %s", text, err, diff)
		}
	})
}
