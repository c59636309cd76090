// SPDX-License-Identifier: Apache-2.0

package redact

import "io"

// A Writer takes the secrets of a [Set] out of what is written through it, also
// where a secret comes in several pieces. It passes on at once all that can't be
// the beginning of a secret, so a line reaches the other side when its end was
// written, unless a secret has that line and goes on. It is not safe for
// concurrent use.
type Writer struct {
	set   *Set
	to    io.Writer
	scan  scan   // its text is what is held back, and a byte before it
	sent  int    // the offset up to which the text was passed on
	out   []byte // room for what is passed on
	found Found
}

// Writer returns a writer that passes on to w. What it takes out is what the set
// holds at the time of a Write.
func (s *Set) Writer(w io.Writer) *Writer { return &Writer{set: s, to: w} }

// Write passes on what can be. An error is that of the writer behind, and what
// was to be passed on is lost then.
func (w *Writer) Write(p []byte) (int, error) {
	if a := w.set.current.Load(); a != w.scan.auto {
		w.restart(a)
	}
	s := &w.scan
	if s.auto == nil {
		return w.pass(p)
	}
	s.text = append(s.text, p...)
	for s.at < s.base+len(s.text) {
		s.run(min(s.at+chunk, s.base+len(s.text)))
		w.take()
	}
	return len(p), w.send()
}

// Flush passes on what is held back, as at the end of the text: the beginning of
// a secret, if what follows is its rest, is shown.
func (w *Writer) Flush() error {
	if w.scan.auto == nil {
		return nil
	}
	w.scan.finish()
	w.take()
	w.scan.text = w.scan.text[:0]
	w.scan.base, w.scan.at, w.sent = 0, 0, 0
	return w.send()
}

// Close is Flush; it does not close the writer behind.
func (w *Writer) Close() error { return w.Flush() }

// Found returns what was taken out so far.
func (w *Writer) Found() Found { return w.found }

// pass passes on p as it is, after what was held back when there still were
// secrets.
func (w *Writer) pass(p []byte) (int, error) {
	s := &w.scan
	if s.at < len(s.text) {
		w.out = append(w.out, s.text[s.at:]...)
		s.text = s.text[:0]
		s.at, w.sent = 0, 0
		if err := w.send(); err != nil {
			return 0, err
		}
	}
	return w.to.Write(p)
}

// restart reads what is held back once more, with other secrets.
func (w *Writer) restart(a *automaton) {
	context := max(w.sent-1, 0) - w.scan.base
	text := append([]byte(nil), w.scan.text[max(context, 0):]...)
	w.sent = min(w.sent, 1)
	w.scan = scan{auto: a, limit: depth, text: text, at: w.sent}
}

// take moves to w.out what is settled.
func (w *Writer) take() {
	s := &w.scan
	settled := s.take(&w.found, func(one span) {
		w.out = append(append(w.out, s.text[w.sent-s.base:one.from-s.base]...), one.owner.marker...)
		w.sent = one.to
	})
	if settled > w.sent {
		w.out = append(w.out, s.text[w.sent-s.base:settled-s.base]...)
		w.sent = settled
	}
	if drop := w.sent - 1 - s.base; drop > 0 {
		s.text = append(s.text[:0], s.text[drop:]...)
		s.base += drop
	}
	if s.top == 0 && len(s.found)+len(s.layers[0].words) == 0 { // no offset is remembered
		s.at, w.sent, s.base = s.at-s.base, w.sent-s.base, 0
	}
}

// send writes what take has moved.
func (w *Writer) send() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.to.Write(w.out)
	w.out = w.out[:0]
	return err
}
