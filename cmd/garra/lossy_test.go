// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// pipe returns a pipe that nobody reads yet.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// A pipe that nobody reads holds nobody up; once it is read, all that was taken
// comes in order, and how much was not.
func TestAFullPipeHoldsNobodyUp(t *testing.T) {
	r, w := pipe(t)
	l := newLossyWriter(w, 1000)
	l.onLoss(func(n int) { fmt.Fprintf(l, "%d dropped\n", n) })
	const written = 20_000 // more than a pipe and the writer hold
	for i := range written {
		if n, err := fmt.Fprintf(l, "line %06d\n", i); n != len("line 000000\n") || err != nil {
			t.Fatalf("line %d: %d, %v", i, n, err)
		}
	}
	lines := bufio.NewScanner(r)
	taken, dropped, last := 0, 0, -1
	for taken+dropped < written && lines.Scan() {
		n := 0
		if _, err := fmt.Sscanf(lines.Text(), "%d dropped", &n); err == nil {
			dropped += n
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "line %06d", &n); err != nil || n <= last {
			t.Fatalf("%q after line %d: %v", lines.Text(), last, err)
		}
		last = n
		taken++
	}
	if taken < 1000/len("line 000000\n") || dropped == 0 || taken+dropped != written {
		t.Errorf("%d lines were taken and %d dropped, of %d", taken, dropped, written)
	}
	l.close(time.Minute)
}

func TestTheEndOfALogIsWritten(t *testing.T) {
	var out bytes.Buffer
	l := newLossyWriter(&out, 1<<20)
	for range 1000 {
		fmt.Fprintln(l, "a line")
	}
	l.close(time.Minute)
	fmt.Fprintln(l, "too late")
	if got, want := out.String(), strings.Repeat("a line\n", 1000); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

func TestAFullPipeDoesNotHoldUpTheEnd(t *testing.T) {
	_, w := pipe(t)
	l := newLossyWriter(w, 1<<20)
	for range 20_000 {
		fmt.Fprintln(l, "a line of some length")
	}
	l.close(time.Millisecond)
}

// While somebody reads, what is written is there when Write returns: output to
// another stream comes after it.
func TestALogThatIsReadKeepsItsPlace(t *testing.T) {
	var out bytes.Buffer
	l := newLossyWriter(&out, 1<<20)
	l.delay = time.Minute
	defer l.close(time.Minute)
	for i := range 1000 {
		fmt.Fprintln(l, "a line")
		if want := (i + 1) * len("a line\n"); out.Len() != want {
			t.Fatalf("%d bytes after line %d, want %d", out.Len(), i, want)
		}
	}
}

// What is larger than the whole memory is written, when there is nothing else.
func TestALongLineIsWritten(t *testing.T) {
	var out bytes.Buffer
	l := newLossyWriter(&out, 10)
	fmt.Fprint(l, strings.Repeat("x", 100))
	l.close(time.Minute)
	if out.Len() != 100 {
		t.Errorf("%d bytes", out.Len())
	}
}
