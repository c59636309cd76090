// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads frames until the end; an overlong line is noted as "!id".
func readAll(t *testing.T, src io.Reader, limit int64) []string {
	t.Helper()
	r, got := NewReader(src, limit), []string{}
	for {
		frame, err := r.Next()
		if tooLarge, ok := errors.AsType[*TooLargeError](err); ok {
			got = append(got, "!"+tooLarge.ID.String())
			continue
		}
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		got = append(got, string(frame))
	}
}

func TestReaderFrames(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	tests := map[string]struct {
		in    string
		limit int64
		want  []string
	}{
		"nothing":              {in: "", want: []string{}},
		"blank lines":          {in: "\n \r\n\t\n", want: []string{}},
		"two lines":            {in: "a\nb\n", want: []string{"a", "b"}},
		"no newline at end":    {in: "a\nb", want: []string{"a", "b"}},
		"carriage returns":     {in: "a\r\nb \r\n", want: []string{"a", "b"}},
		"byte order mark":      {in: "\xef\xbb\xbf{}\n", want: []string{"{}"}},
		"longer than a buffer": {in: long + "\nb\n", want: []string{long, "b"}},
		"exactly the limit":    {in: "12345\nb\n", limit: 5, want: []string{"12345", "b"}},
		"over, id first": {
			in: `{"id":7,"result":"` + long + "\"}\nb\n", limit: 60_000, want: []string{"!7", "b"},
		},
		"over, id last": {
			in:    `{"result":{"id":1,"x":"` + long + `"},"jsonrpc":"2.0","id":"é\"7"}` + "\nb\n",
			limit: 60_000, want: []string{`!"é\"7"`, "b"},
		},
		"over, in one buffer": {
			in: `{"result":{"a":[1,{"id":3}]},"id": 42 }` + "\nb\n", limit: 10, want: []string{"!42", "b"},
		},
		"over, no id":      {in: long + "\nb", limit: 60_000, want: []string{"!null", "b"}},
		"over, no newline": {in: `{"id":3,"result":"` + long[:300], limit: 100, want: []string{"!3"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				got := readAll(t, src, tt.limit)
				if len(got) != len(tt.want) {
					t.Fatalf("got %d frames %.80q, want %d", len(got), got, len(tt.want))
				}
				for i := range got {
					if got[i] != tt.want[i] {
						t.Errorf("frame %d: got %.80q, want %.80q", i, got[i], tt.want[i])
					}
				}
			}
		})
	}
}

func TestReaderTellsWhatIsCut(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, line := range []string{"{}", long} {
		r := NewReader(strings.NewReader(line+"\n"+line), 0)
		for _, cut := range []bool{false, true} {
			if _, err := r.Next(); err != nil || r.Cut() != cut {
				t.Errorf("%.10q: cut %v, %v", line, r.Cut(), err)
			}
		}
	}
}

func TestReaderTellsRepliesFromRequests(t *testing.T) {
	for in, reply := range map[string]bool{
		`{"id":1,"result":"` + strings.Repeat("x", 300) + "\"}\n":                true,
		`{"method":"m","id":1,"params":["` + strings.Repeat("x", 300) + "\"]}\n": false,
		`{"id":1,"result":{"method":"` + strings.Repeat("x", 300) + "\"}}\n":     true,
	} {
		_, err := NewReader(strings.NewReader(in), 100).Next()
		tooLarge, ok := errors.AsType[*TooLargeError](err)
		if !ok || tooLarge.Reply != reply || tooLarge.Size != int64(len(in)) {
			t.Errorf("%.30q: got %+v, want Reply %v and Size %d", in, err, reply, len(in))
		}
	}
}

func TestReaderGivesUpOnALineWithoutEnd(t *testing.T) {
	endless := io.LimitReader(zeros{}, 1<<30)
	if _, err := NewReader(endless, 1<<16).Next(); !errors.Is(err, ErrRunaway) {
		t.Fatalf("got %v, want ErrRunaway", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// FuzzReader holds that frames never hold a newline or exceed the limit, and
// that nothing but white space and overlong lines is lost.
func FuzzReader(f *testing.F) {
	f.Add([]byte("a\n\xef\xbb\xbf{}\r\n\n"), int64(10))
	f.Add([]byte(`{"id":1,"x":"`+strings.Repeat("y", 99)+"\"}\nz"), int64(20))
	f.Fuzz(func(t *testing.T, in []byte, limit int64) {
		limit = min(max(limit, 1), 1<<20)
		r := NewReader(bytes.NewReader(in), limit)
		total := 0
		for {
			frame, err := r.Next()
			if _, ok := errors.AsType[*TooLargeError](err); ok {
				continue
			}
			if errors.Is(err, ErrRunaway) {
				return
			}
			if err != nil {
				break
			}
			if bytes.ContainsRune(frame, '\n') || int64(len(frame)) > limit+1 || len(frame) == 0 {
				t.Fatalf("frame %q of limit %d", frame, limit)
			}
			total += len(frame)
		}
		if total > len(in) {
			t.Fatalf("%d bytes out of %d", total, len(in))
		}
	})
}

// Lines of all lengths around the sizes of buffers come out as they went in, however
// they are cut.
func TestReaderKeepsLinesOfAllLengths(t *testing.T) {
	t.Parallel()
	var want [][]byte
	var text bytes.Buffer
	for i, n := range []int{
		1, readBuffer - 1, readBuffer, readBuffer + 1, 3, 2*readBuffer + 7, chunkSize - 1, chunkSize, chunkSize + 1,
		5, 3*chunkSize + 11, readBuffer + 2, 9, chunkSize * 2, 1, 1,
	} {
		line := bytes.Repeat([]byte{byte('a' + i)}, n)
		want = append(want, line)
		text.Write(append(line, '\n'))
	}
	for _, size := range []int{1 << 20, 1000, chunkSize + 3, readBuffer} {
		r := NewReader(&pieces{bytes.NewReader(text.Bytes()), size}, 0)
		for i, line := range want {
			got, err := r.Next()
			if err != nil || !bytes.Equal(got, line) {
				t.Fatalf("in pieces of %d: line %d has %d bytes, want %d (%v)", size, i, len(got), len(line), err)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("in pieces of %d: %v at the end", size, err)
		}
	}
}

// pieces reads in pieces of at most a size.
type pieces struct {
	io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }
