// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriterWaitsOnlyForSecrets looks at what has been passed on after each
// write.
func TestWriterWaitsOnlyForSecrets(t *testing.T) {
	var s Set
	s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}, {Name: "LONG", Text: "abcdefgh1-more"}, {Name: "PIN", Text: "x7y9"}})
	var got bytes.Buffer
	w := s.Writer(&got)
	for _, step := range []struct{ write, passed string }{
		{"one line\n", "one line\n"},
		{"prompt: ", "prompt: "},
		{"tab", "t"},
		{"cd", ""},
		{"z\n", "abcdz\n"},
		{"abcdefgh1", ""},
		{"-mo", ""},
		{"\n", "[redacted:A]-mo\n"},
		{"abcdefgh1-mor", ""},
		{"e", "[redacted:LONG]"},
		{"50%", "50"},
		{" \\", "% "},
		{"n x7y9", "\\n "},
		{" x7y9", "[redacted:PIN] "},
		{"1\n", "x7y91\n"},
		{"\\u0061bcdef", ""},
		{"g", ""},
		{"\\x681-", ""},
		{"z", "[redacted:A]-z"},
	} {
		got.Reset()
		if n, err := io.WriteString(w, step.write); err != nil || n != len(step.write) {
			t.Fatal(n, err)
		}
		if got.String() != step.passed {
			t.Errorf("after %q: %q, want %q", step.write, got.String(), step.passed)
		}
	}
	if f := w.Found(); f.Count != 4 || !cmp.Equal(f.Names(), []string{"A", "LONG", "PIN"}) {
		t.Errorf("%+v", f)
	}
}

func TestWriterFlush(t *testing.T) {
	var s Set
	var got bytes.Buffer
	w := s.Writer(&got)
	write := func(text, want string) {
		t.Helper()
		got.Reset()
		_, err := io.WriteString(w, text)
		if err := errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("%q, want %q", got.String(), want)
		}
	}
	write("abcdefgh1", "abcdefgh1")
	s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}, {Name: "PIN", Text: "x7y9"}})
	write("abcdefgh1", "[redacted:A]")
	write("abcd", "abcd")
	write("efgh1", "efgh1")
	write("x7y9", "[redacted:PIN]")
	write("\\u00", "\\u00")
	write("%4", "%4")
	if err := w.Close(); err != nil || got.String() != "%4" {
		t.Error(err, got.String())
	}
}

// TestWriterFollowsTheSet changes what is held between two parts of a secret.
func TestWriterFollowsTheSet(t *testing.T) {
	var s Set
	first := s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}})
	var got strings.Builder
	w := s.Writer(&got)
	write := func(text string) {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	write("x abcd")
	second := s.Hold([]Value{{Name: "B", Text: "bcdxyzuvw"}, {Name: "PIN", Text: "x7y9"}})
	write("efgh1 abcdxyz")
	first()
	write("uvw zx7y9 x7y9")
	second()
	write("! bcdxyzuvw")
	if want := "x [redacted:A] a[redacted:B] zx7y9 x7y9! bcdxyzuvw"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
}

// failing is a writer that can't write.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriterFails(t *testing.T) {
	var s Set
	s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}})
	w := s.Writer(failing{})
	if _, err := io.WriteString(w, "abc"); err != nil {
		t.Errorf("%v, though nothing was passed on", err)
	}
	if err := w.Flush(); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if _, err := io.WriteString(w, "x"); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestWriterForgets writes a lot: what is kept stays small.
func TestWriterForgets(t *testing.T) {
	var s Set
	s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}})
	for _, text := range []string{"abcdefgh1", "abcd ", `\u0061\\u0062%2563`, "\\"} {
		w := s.Writer(io.Discard)
		piece := []byte(strings.Repeat(text, 1000))
		for range 100 {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if held := len(w.scan.text); held > 100 {
			t.Errorf("%q: %d bytes are held back", text, held)
		}
		for k := range w.scan.layers {
			if n := cap(w.scan.layers[k].past); n > 1000 {
				t.Errorf("%q: layer %d remembers %d bytes", text, k, n)
			}
		}
	}
}

// FuzzWriter writes a text in pieces: they make no difference.
func FuzzWriter(f *testing.F) {
	for _, seed := range []string{
		"abcdefgh1 x7y9", `\u0061bcdefgh1\nx7y9\n`, "%2561bcdefgh1", "&#97;bcdefgh1&lt",
		"YWJjZGVmZ2gx", "616263646566676831",
		`\ud83d\ude00\ud83d\\\\u0061`, "abcdefgh1abcdefgh1-more",
	} {
		f.Add([]byte(seed), uint64(0x5a5a))
	}
	var s Set
	s.Hold([]Value{{Name: "A", Text: "abcdefgh1"}, {Name: "LONG", Text: "abcdefgh1-more"}, {Name: "PIN", Text: "x7y9"}})
	s.Hold([]Value{{Name: "ODD", Text: `\u00\%41&l`}, {Name: "WIDE", Text: "ab 😀 cd"}})
	f.Fuzz(func(t *testing.T, text []byte, cuts uint64) {
		want, found := s.Text(text)
		var got bytes.Buffer
		w := s.Writer(&got)
		from := 0
		for to := range text {
			if cuts>>(to%64)&1 == 1 {
				w.Write(text[from:to])
				from = to
			}
		}
		w.Write(text[from:])
		w.Close()
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%q became %q, want %q", text, got.Bytes(), want)
		}
		if w.Found().Count != found.Count || !cmp.Equal(w.Found().Names(), found.Names()) {
			t.Fatalf("%q: found %+v, want %+v", text, w.Found(), found)
		}
	})
}
