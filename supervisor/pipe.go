// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"os"
)

// A pipeWriter writes whole frames to a server's standard input. Frames of
// several goroutines never mix. A server that doesn't read makes its callers
// wait, each for as long as its context allows, and nobody else.
type pipeWriter struct {
	file *os.File
	slot chan struct{} // holds one token: whose turn it is to write
}

func newPipeWriter(file *os.File) *pipeWriter {
	w := &pipeWriter{file: file, slot: make(chan struct{}, 1)}
	w.slot <- struct{}{}
	return w
}

// write writes one frame, which must end in a newline. When ctx ends while the
// pipe is full, write returns, and the frame's rest is written in the
// background, since half a frame would break the next one.
func (w *pipeWriter) write(ctx context.Context, frame []byte) error {
	select {
	case <-w.slot:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	n, err := tryWrite(w.file, frame)
	if err != nil || n == len(frame) {
		w.slot <- struct{}{}
		return err
	}
	done := make(chan error, 1)
	go func() { // ends when the rest is written or the pipe is closed
		_, err := w.file.Write(frame[n:])
		w.slot <- struct{}{}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *pipeWriter) close() error { return w.file.Close() }
