// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// errInputClosed is wrapped by the error of a write to a server that doesn't
// take any input any more.
var errInputClosed = errors.New("standard input is closed")

// A pipeWriter writes whole frames to a server's standard input. Frames of
// several goroutines never mix. A server that doesn't read makes its callers
// wait, each for as long as its context allows, and nobody else.
type pipeWriter struct {
	file   *os.File
	slot   chan struct{} // holds one token: whose turn it is to write
	broken func(error)   // is told when a write failed
}

func newPipeWriter(file *os.File, broken func(error)) *pipeWriter {
	w := &pipeWriter{file: file, slot: make(chan struct{}, 1), broken: broken}
	w.slot <- struct{}{}
	return w
}

// write writes one frame, which must end in a newline. When ctx ends while the
// pipe is full, write returns the cause; if the frame was begun by then, its
// rest is written in the background, since half a frame would break the next
// one. An error of the pipe wraps errInputClosed.
func (w *pipeWriter) write(ctx context.Context, frame []byte) (begun bool, err error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	select {
	case <-w.slot:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	rest, err := w.begin(frame)
	if rest == nil {
		return true, err
	}
	select {
	case err := <-rest:
		return true, err
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// offer writes one frame if nobody else is writing, and reports whether it did.
// It doesn't wait: what the pipe doesn't take at once follows in the background.
func (w *pipeWriter) offer(frame []byte) bool {
	select {
	case <-w.slot:
		_, _ = w.begin(frame) // an error is the end of the run, which broken was told
		return true
	default:
		return false
	}
}

// begin writes as much of a frame as the pipe takes at once, and ends the turn.
// If something is left, that comes later, and the outcome to rest.
func (w *pipeWriter) begin(frame []byte) (rest <-chan error, err error) {
	n, err := tryWrite(w.file, frame)
	if err != nil || n == len(frame) {
		return nil, w.finish(err)
	}
	done := make(chan error, 1)
	go func() { // ends when the rest is written or the pipe is closed
		_, err := w.file.Write(frame[n:])
		done <- w.finish(err)
	}()
	return done, nil
}

// finish ends a turn.
func (w *pipeWriter) finish(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", errInputClosed, err)
		w.broken(err)
	}
	w.slot <- struct{}{}
	return err
}
