// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"sync"
	"time"
)

const (
	lossyBytes = 1 << 20     // of standard error that nobody has read yet
	lossyGrace = time.Second // for the rest of it, at the end
)

// A lossyWriter writes to a stream that may not be read, and never waits for it:
// what doesn't fit in its memory is dropped, and counted. Clients exist that start
// their servers with a pipe for standard error and never read it; the log must not
// stop what it tells of.
type lossyWriter struct {
	out   io.Writer
	limit int           // bytes of queue
	more  chan struct{} // holds one token: the queue or closed has changed
	done  chan struct{} // closed when all is written that will be

	mu        sync.Mutex // guards all below; not held while something is written
	queue     [][]byte
	unread    int              // bytes in queue, and of what is being written
	dropped   int              // writes, since the last report
	report    func(writes int) // tells how many were dropped; nil for nobody
	reporting bool             // what is written now may be the report, and is taken
	closed    bool             // nothing more is taken
}

func newLossyWriter(out io.Writer, limit int) *lossyWriter {
	l := &lossyWriter{out: out, limit: limit, more: make(chan struct{}, 1), done: make(chan struct{})}
	go l.drain() // ends with close, which waits for it but not for long
	return l
}

// Write implements io.Writer. It takes each write whole, or drops it.
func (l *lossyWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	full := l.unread > 0 && l.unread+len(text) > l.limit
	if l.closed || full && !l.reporting {
		l.dropped++
	} else {
		l.queue = append(l.queue, append([]byte(nil), text...))
		l.unread += len(text)
	}
	l.mu.Unlock()
	l.wake()
	return len(text), nil
}

// Fd is the descriptor of the stream, for who asks whether it is a terminal.
func (l *lossyWriter) Fd() uintptr {
	if f, ok := l.out.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// onLoss sets what is called, once writing works again, with the number of writes
// that were dropped. It may write.
func (l *lossyWriter) onLoss(report func(writes int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report = report
}

func (l *lossyWriter) wake() {
	select {
	case l.more <- struct{}{}:
	default: // drain looks anyway
	}
}

// drain writes what is queued until close.
func (l *lossyWriter) drain() {
	defer close(l.done)
	for range l.more {
		for l.flush() {
		}
		if l.isClosed() {
			return
		}
	}
}

// flush writes what is queued now, and then has reported what was dropped
// meanwhile. It returns false when there was nothing.
func (l *lossyWriter) flush() bool {
	l.mu.Lock()
	queue := l.queue
	l.queue = nil
	l.mu.Unlock()
	for _, text := range queue {
		// Where else could an error of standard error be told?
		_, _ = l.out.Write(text)
		l.mu.Lock()
		l.unread -= len(text)
		l.mu.Unlock()
	}
	return l.reportLoss() || len(queue) > 0
}

// reportLoss has the loss reported, and returns false when there was none.
func (l *lossyWriter) reportLoss() bool {
	l.mu.Lock()
	dropped, report := l.dropped, l.report
	if dropped == 0 || report == nil || l.closed {
		l.mu.Unlock()
		return false
	}
	l.dropped, l.reporting = 0, true
	l.mu.Unlock()
	report(dropped)
	l.mu.Lock()
	l.reporting = false
	l.mu.Unlock()
	return true
}

func (l *lossyWriter) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// close writes what is left, giving a reader that doesn't read a moment.
func (l *lossyWriter) close(grace time.Duration) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wake()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}
