// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	eventBuffer   = 32 << 10 // of a stream; most events fit
	maxField      = 4 << 10  // of an event, besides its data
	runawayFactor = 4        // times the largest event is no event any more
)

// errRunaway is the end of a stream whose event doesn't end.
var errRunaway = errors.New("an event without an end")

// An event is one server-sent event (HTML standard, section 9.2.6).
type event struct {
	kind string // empty for message
	data []byte // the caller's to keep; cut when the event is too large
	size int64  // of the data as it was sent
}

// An eventReader reads a stream of events. It is for one goroutine.
type eventReader struct {
	src     *bufio.Reader
	max     int64
	begun   bool          // the first line was read
	skipLF  bool          // the last line ended with CR
	owned   bool          // the last line is no part of src's buffer
	pending string        // the id of the event that is being read
	lastID  string        // of the last event that was complete; where to resume
	retry   time.Duration // what the server asks for; negative when nothing
}

func newEventReader(src io.Reader, limit int64) *eventReader {
	return &eventReader{src: bufio.NewReaderSize(src, eventBuffer), max: limit, retry: -1}
}

// next returns the next event that has data. At the end of the stream it returns
// io.EOF, or whatever the source does.
func (r *eventReader) next() (*event, error) {
	e, data := new(event), false
	for {
		line, size, err := r.line(r.max - int64(len(e.data)) + maxField)
		if err != nil {
			if errors.Is(err, io.EOF) && len(e.data) > 0 {
				return e, nil // the last line end was forgotten
			}
			return nil, err
		}
		if rest, marked := bytes.CutPrefix(line, []byte("\xef\xbb\xbf")); marked && !r.begun {
			line, size = rest, size-3
		}
		r.begun = true
		if size == 0 {
			r.lastID = r.pending
			if data {
				return e, nil
			}
			e.kind = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		if string(name) == "data" {
			if !r.owned {
				value = bytes.Clone(value)
			}
			e.add(value, size-int64(len(line)-len(value)), r.max)
			data = true
			continue
		}
		if size <= maxField {
			r.field(e, string(name), string(value))
		}
	}
}

// add appends a line of data that had that size, and may have been cut. It may
// keep value.
func (e *event) add(value []byte, size, limit int64) {
	e.size += size
	if e.data != nil {
		e.data = append(append(e.data, '\n'), value...)
		e.size++
	} else {
		e.data = value[:len(value):len(value)]
	}
	e.data = e.data[:min(int64(len(e.data)), limit)]
}

// field takes any other field.
func (r *eventReader) field(e *event, name, value string) {
	switch name {
	case "event":
		e.kind = value
	case "id":
		if !strings.ContainsFunc(value, unicode.IsControl) { // no header could hold it
			r.pending = value
		}
	case "retry":
		if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	}
}

// line reads one line without its end, which may be LF, CR or both, and keeps
// at most limit bytes of it. The line is valid until the next one is read; size
// is its whole length.
func (r *eventReader) line(limit int64) (line []byte, size int64, err error) {
	var long []byte
	for {
		if _, err := r.src.Peek(1); err != nil {
			return nil, 0, err
		}
		part, _ := r.src.Peek(r.src.Buffered())
		if part = r.trimmed(part); len(part) == 0 {
			continue
		}
		end, found := lineEnd(part)
		size += int64(end)
		if size > runawayFactor*(r.max+maxField) {
			return nil, 0, fmt.Errorf("%w: %d bytes", errRunaway, size)
		}
		kept := part[:min(int64(end), max(limit-int64(len(long)), 0))]
		if !found || long != nil {
			long = append(long, kept...)
		}
		if found {
			r.skipLF = part[end] == '\r'
		}
		_, _ = r.src.Discard(min(end+1, len(part))) // what was peeked is there
		switch {
		case found && long == nil:
			r.owned = false
			return kept, size, nil
		case found:
			r.owned = true
			return long, size, nil
		}
	}
}

// trimmed takes off the LF of a CRLF, which belongs to no line.
func (r *eventReader) trimmed(part []byte) []byte {
	after := r.skipLF && part[0] == '\n'
	r.skipLF = false
	if after {
		_, _ = r.src.Discard(1) // what was peeked is there
		return part[1:]
	}
	return part
}

// lineEnd returns the place of the first line end, or the length of the text.
func lineEnd(text []byte) (end int, found bool) {
	end = len(text)
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		end, found = i, true
	}
	if i := bytes.IndexByte(text[:end], '\r'); i >= 0 {
		return i, true
	}
	return end, found
}
