// SPDX-License-Identifier: Apache-2.0

// Package sse writes server-sent events (HTML standard, section 9.2).
package sse

import (
	"io"
	"net/http"
	"time"
)

// KeepAlive is how long a stream should be silent at most before a comment is
// written, so that nothing between here and the client gives the connection up.
const KeepAlive = 15 * time.Second

// WriteTimeout is how long a client may take to read so many bytes: half a
// minute, and what a line of 64 KiB a second needs.
func WriteTimeout(bytes int) time.Duration {
	return 30*time.Second + time.Duration(bytes>>16)*time.Second
}

// A Writer is the body of a response that is a stream of events. Its methods
// return an error when the client is gone, or doesn't read. It is for one
// goroutine.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Begin writes the header of the response.
func Begin(w http.ResponseWriter) (*Writer, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	s := &Writer{w, http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	return s, s.control.Flush()
}

// Event writes one event. Its data, in one or several pieces, must be on one line.
// Kind and id may be empty.
func (s *Writer) Event(kind, id string, data ...[]byte) error {
	size := 0
	for _, piece := range data {
		size += len(piece)
	}
	s.patience(size)
	head := ""
	if kind != "" {
		head = "event: " + kind + "\n"
	}
	if id != "" {
		head += "id: " + id + "\n"
	}
	if _, err := io.WriteString(s.w, head+"data: "); err != nil {
		return err
	}
	for _, piece := range data {
		if _, err := s.w.Write(piece); err != nil {
			return err
		}
	}
	return s.end("\n\n")
}

// Comment writes a line that clients skip.
func (s *Writer) Comment() error {
	s.patience(0)
	return s.end(": still here\n\n")
}

func (s *Writer) end(text string) error {
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// patience moves the deadline of the connection. A response without deadlines,
// as tests have it, just has none.
func (s *Writer) patience(bytes int) {
	_ = s.control.SetWriteDeadline(time.Now().Add(WriteTimeout(bytes)))
}
