// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
)

// A lineReader reads lines of any length into one buffer that it keeps.
type lineReader struct {
	in         io.Reader
	buf        []byte
	begin, end int // of what was read and not yet returned
}

func newLineReader(in io.Reader) *lineReader { return &lineReader{in: in, buf: make([]byte, 64<<10)} }

// next returns a line without its end, valid until the next call.
func (r *lineReader) next() ([]byte, error) {
	for searched := 0; ; {
		if i := bytes.IndexByte(r.buf[r.begin+searched:r.end], '\n'); i >= 0 {
			line := r.buf[r.begin : r.begin+searched+i]
			r.begin += searched + i + 1
			return line, nil
		}
		searched = r.end - r.begin
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads more, behind what there is.
func (r *lineReader) fill() error {
	if r.begin == r.end {
		r.begin, r.end = 0, 0
	}
	if r.end == len(r.buf) {
		kept := r.buf[r.begin:r.end]
		if len(kept) > len(r.buf)/2 {
			r.buf = make([]byte, 2*len(r.buf))
		}
		r.begin, r.end = 0, copy(r.buf, kept)
	}
	n, err := r.in.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil
	}
	return err
}
