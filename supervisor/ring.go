// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

const (
	ringBytes    = 256 << 10 // what is kept of a server's stderr, with lineOverhead
	maxLineBytes = 8 << 10   // longer lines are cut
	tailLines    = 5         // how many last lines a failure quotes
	tailBytes    = 1 << 10   // and how much of them at most
	lineOverhead = 64        // what a line takes besides its text, about
)

// A ring keeps the last lines of a server's standard error, over restarts. It
// is safe for concurrent use.
type ring struct {
	mu      sync.Mutex    // guards all below
	lines   []source.Line // oldest first
	bytes   int
	seq     uint64
	changed chan struct{} // closed at the next line
}

func newRing() *ring { return &ring{changed: make(chan struct{})} }

// add keeps a line of the server's.
func (r *ring) add(text string) { r.keep(source.Line{Text: text}) }

// note keeps a line of garra's own.
func (r *ring) note(text string) { r.keep(source.Line{Text: text, Note: true}) }

func (r *ring) keep(line source.Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seq++
	line.Seq, line.Time = r.seq, time.Now()
	r.lines = append(r.lines, line)
	r.bytes += len(line.Text) + lineOverhead
	for r.bytes > ringBytes {
		r.bytes -= len(r.lines[0].Text) + lineOverhead
		r.lines[0] = source.Line{} // the array is shared until append moves it
		r.lines = r.lines[1:]
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// after returns the lines behind seq, and a channel that is closed when there
// are more.
func (r *ring) after(seq uint64) ([]source.Line, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newer := min(r.seq-min(seq, r.seq), uint64(len(r.lines))) // lines are numbered without gaps
	return slices.Clone(r.lines[uint64(len(r.lines))-newer:]), r.changed
}

// tail returns the last lines behind seq that say something, for a message about what
// went wrong.
func (r *ring) tail(seq uint64) (kept []string) {
	lines, _ := r.after(seq)
	size := 0
	for i := len(lines) - 1; i >= 0 && len(kept) < tailLines; i-- {
		text := strings.TrimSpace(lines[i].Text)
		if text == "" || lines[i].Note {
			continue
		}
		if size += len(text); size > tailBytes && len(kept) > 0 {
			break
		}
		kept = append([]string{text}, kept...)
	}
	return kept
}

// last returns the number of the newest line.
func (r *ring) last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seq
}

// drain reads lines until the end of src, so that a server that writes much is
// never blocked by its standard error. Each goes to the ring and to each, without
// secrets.
func (r *ring) drain(src io.Reader, secrets *redact.Set, each func(string)) {
	lines := &lineWriter{each: func(line string) {
		r.add(line)
		each(line)
	}}
	out := secrets.Writer(lines)
	// Without the shortcuts of both, which would take what comes in larger pieces. The
	// copy ends with src, and lines take everything.
	_, _ = io.CopyBuffer(struct{ io.Writer }{out}, polite{src}, make([]byte, maxLineBytes))
	_ = out.Close()
	lines.end()
}

// A polite reader lets others run before it reads on: who writes without end would else
// hold them up, as with messages (see turn).
type polite struct{ src io.Reader }

// Read implements io.Reader.
func (p polite) Read(b []byte) (int, error) {
	runtime.Gosched()
	return p.src.Read(b)
}

// A lineWriter cuts what is written into lines, and long lines short.
type lineWriter struct {
	line []byte
	each func(line string)
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		w.line = append(w.line, part[:min(len(part), maxLineBytes-len(w.line))]...)
		if ended {
			w.flush()
		}
		rest = after
	}
	return len(p), nil
}

// end passes on what is left without a line end.
func (w *lineWriter) end() {
	if len(w.line) > 0 {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	w.each(strings.TrimRight(string(w.line), "\r"))
	w.line = w.line[:0]
}
