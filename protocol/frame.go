// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
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
	in     source
	src    *bufio.Reader // of in
	max    int64
	cut    bool      // the last line ended with src
	chunks sync.Pool // that no pile uses: most of what a large result costs is memory that was not used before
}

// NewReader returns a Reader on src that returns frames of at most limit bytes
// ([DefaultMaxFrame] when limit is 0).
func NewReader(src io.Reader, limit int64) *Reader {
	if limit <= 0 {
		limit = DefaultMaxFrame
	}
	r := &Reader{in: source{Reader: src}, max: limit}
	r.src = bufio.NewReaderSize(&r.in, readBuffer)
	return r
}

// A source is what is read, behind bytes that were read too early.
type source struct {
	io.Reader
	early []byte
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if len(s.early) == 0 {
		return s.Reader.Read(p)
	}
	n := copy(p, s.early)
	s.early = s.early[n:]
	return n, nil
}

// unread puts bytes back that were read last.
func (s *source) unread(p []byte) { s.early = append(bytes.Clone(p), s.early...) }

// Next returns the next line that is not blank, without its line end, a byte
// order mark and surrounding white space. The slice is the caller's to keep.
//
// Errors: io.EOF at a clean end (a last line without a newline is returned
// first), a *[TooLargeError] for a line that was skipped, [ErrRunaway], and
// whatever the source returns.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, err := r.line()
		r.cut = len(line) > 0 && line[len(line)-1] != '\n'
		line = trim(line)
		if len(line) > 0 || err != nil {
			return line, err
		}
	}
}

// Cut reports whether the last line that Next returned ended with the source, not with
// a newline: its writer may have had more to say.
func (r *Reader) Cut() bool { return r.cut }

// line reads up to and including the next newline.
func (r *Reader) line() ([]byte, error) {
	part, err := r.src.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return r.long(part)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case int64(len(part)) > r.max+1: // the newline is not counted
		s := newTopScanner()
		s.write(part)
		return nil, s.tooLarge(int64(len(part)), r.max)
	case len(part) == 0:
		return nil, err // at the end of the stream
	}
	return bytes.Clone(part), nil
}

// long reads the rest of a line that doesn't fit in the buffer, which is empty
// now: the pile is read into directly.
func (r *Reader) long(begin []byte) ([]byte, error) {
	p := pile{unused: &r.chunks}
	defer p.free()
	p.add(begin)
	for p.size <= r.max+1 {
		room := p.room()
		n, err := r.in.Read(room)
		end := bytes.IndexByte(room[:n], '\n') + 1
		switch {
		case end > 0:
			r.in.unread(room[end:n])
			p.take(end)
			return r.whole(&p)
		case err == nil:
			p.take(n)
		case errors.Is(err, io.EOF):
			p.take(n)
			return r.whole(&p)
		default:
			return nil, err
		}
	}
	return nil, r.skip(&p)
}

// whole is a long line, or why it can't be had.
func (r *Reader) whole(p *pile) ([]byte, error) {
	if p.size > r.max+1 {
		s := newTopScanner()
		p.each(s.write)
		return nil, s.tooLarge(p.size, r.max)
	}
	return p.join(), nil
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

// chunkSize is the size of a pile's chunks, in bytes.
const chunkSize = 256 << 10

// A pile collects the parts of a long line. Growing one slice instead would copy
// each byte several times.
type pile struct {
	unused *sync.Pool // of chunks
	chunks []*[chunkSize]byte
	last   int // bytes in the last chunk
	size   int64
}

// room returns where the next bytes go, which is never empty; take says how many
// came.
func (p *pile) room() []byte {
	if len(p.chunks) == 0 || p.last == chunkSize {
		chunk, ok := p.unused.Get().(*[chunkSize]byte)
		if !ok {
			chunk = new([chunkSize]byte)
		}
		p.chunks, p.last = append(p.chunks, chunk), 0
	}
	return p.chunks[len(p.chunks)-1][p.last:]
}

func (p *pile) take(n int) {
	p.last += n
	p.size += int64(n)
}

// add copies a part.
func (p *pile) add(part []byte) {
	for len(part) > 0 {
		n := copy(p.room(), part)
		p.take(n)
		part = part[n:]
	}
}

// each hands out the parts in order.
func (p *pile) each(take func([]byte)) {
	for i, chunk := range p.chunks {
		if i == len(p.chunks)-1 {
			take(chunk[:p.last])
		} else {
			take(chunk[:])
		}
	}
}

// join returns everything as one slice of its own.
func (p *pile) join() []byte {
	parts := make([][]byte, 0, len(p.chunks))
	p.each(func(part []byte) { parts = append(parts, part) })
	return bytes.Join(parts, nil)
}

// free gives the chunks back.
func (p *pile) free() {
	for _, chunk := range p.chunks {
		p.unused.Put(chunk)
	}
	p.chunks = nil
}

// trim takes off white space and a UTF-8 byte order mark.
func trim(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if rest, ok := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); ok {
		return bytes.TrimSpace(rest)
	}
	return line
}
