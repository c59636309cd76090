// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxFrame is the largest frame, in bytes, that a [Reader] returns when
// its limit isn't set.
const DefaultMaxFrame = 128 << 20

// runawayFactor times the cap without a newline is no long message any more but
// a stream without an end.
const runawayFactor = 4

// readBuffer is the size of a Reader's buffer in bytes. Most frames fit in it.
const readBuffer = 64 << 10

// ErrRunaway is returned by [Reader.Next] when a line is longer than four times
// the cap: its writer has lost the framing and should be restarted.
var ErrRunaway = errors.New("line without an end")

// A TooLargeError is returned by [Reader.Next] for a line over the cap. The
// line was skipped, the Reader stands behind it and can go on.
type TooLargeError struct {
	ID    ID    // of the message's top level; zero when none was found
	Reply bool  // the line had no method: it was the answer to request ID
	Size  int64 // bytes of the line
	Limit int64 // the cap in bytes
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message of %d bytes is over the limit of %d bytes", e.Size, e.Limit)
}

// A Reader reads newline-delimited frames. It holds one frame at most and is
// for one goroutine.
type Reader struct {
	src *bufio.Reader
	max int64
}

// NewReader returns a Reader on src that returns frames of at most limit bytes
// ([DefaultMaxFrame] when limit is 0).
func NewReader(src io.Reader, limit int64) *Reader {
	if limit <= 0 {
		limit = DefaultMaxFrame
	}
	return &Reader{src: bufio.NewReaderSize(src, readBuffer), max: limit}
}

// Next returns the next line that is not blank, without its line end, a byte
// order mark and surrounding white space. The slice is the caller's to keep.
//
// Errors: io.EOF at a clean end (a last line without a newline is returned
// first), a *[TooLargeError] for a line that was skipped, [ErrRunaway], and
// whatever the source returns.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, err := r.line()
		line = trim(line)
		if len(line) > 0 || err != nil {
			return line, err
		}
	}
}

// line reads up to and including the next newline.
func (r *Reader) line() ([]byte, error) {
	var before pile
	for {
		part, err := r.src.ReadSlice('\n')
		if err == nil || errors.Is(err, io.EOF) {
			return r.last(&before, part, err)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		before.add(part)
		if before.size > r.max {
			return nil, r.skip(&before)
		}
	}
}

// last joins the end of a line to what was read of it before.
func (r *Reader) last(before *pile, part []byte, err error) ([]byte, error) {
	size := before.size + int64(len(part))
	if size > r.max+1 { // the newline is not counted
		s := newTopScanner()
		before.each(s.write)
		s.write(part)
		return nil, s.tooLarge(size, r.max)
	}
	if size == 0 {
		return nil, err // at the end of the stream
	}
	return before.join(part), nil
}

// skip reads on to the end of an overlong line without storing it, looking for
// its id.
func (r *Reader) skip(begin *pile) error {
	s := newTopScanner()
	begin.each(s.write)
	size := begin.size
	for {
		part, err := r.src.ReadSlice('\n')
		size += int64(len(part))
		s.write(part)
		switch {
		case err == nil || errors.Is(err, io.EOF):
			return s.tooLarge(size, r.max)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		case size > runawayFactor*r.max:
			return fmt.Errorf("%w: %d bytes", ErrRunaway, size)
		}
	}
}

// The sizes of a pile's chunks, in bytes.
const (
	firstChunk = 256 << 10
	maxChunk   = 8 << 20
)

// A pile collects the parts of a long line. Growing one slice instead would copy
// each byte several times.
type pile struct {
	chunks [][]byte
	size   int64
}

// add copies a part.
func (p *pile) add(part []byte) {
	p.size += int64(len(part))
	for len(part) > 0 {
		last := len(p.chunks) - 1
		if last < 0 || len(p.chunks[last]) == cap(p.chunks[last]) {
			p.chunks = append(p.chunks, make([]byte, 0, min(firstChunk<<min(len(p.chunks), 8), maxChunk)))
			last++
		}
		chunk := p.chunks[last]
		n := min(len(part), cap(chunk)-len(chunk))
		p.chunks[last] = append(chunk, part[:n]...)
		part = part[n:]
	}
}

// each hands out the chunks in order.
func (p *pile) each(take func([]byte)) {
	for _, chunk := range p.chunks {
		take(chunk)
	}
}

// join returns everything and the last part as one slice of its own.
func (p *pile) join(part []byte) []byte {
	line := make([]byte, 0, p.size+int64(len(part)))
	p.each(func(chunk []byte) { line = append(line, chunk...) })
	return append(line, part...)
}

// trim takes off white space and a UTF-8 byte order mark.
func trim(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if rest, ok := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); ok {
		return bytes.TrimSpace(rest)
	}
	return line
}
