// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"sync"
	"time"
)

const (
	lossyBytes = 1 << 20                // of standard error that nobody has read yet
	lossyDelay = 100 * time.Millisecond // until it counts as not read
	lossyGrace = time.Second            // for the rest of it, at the end
)

// A lossyWriter writes to a stream that may not be read, and doesn't wait for it:
// what doesn't fit in its memory is dropped, and counted. Clients exist that start
// their servers with a pipe for standard error and never read it; the log must not
// stop what it tells of.
//
// While the stream takes what it gets, Write returns when it has, so that what is
// written to another stream afterwards comes afterwards on a terminal too.
type lossyWriter struct {
	out   io.Writer
	limit int           // bytes of queue
	delay time.Duration // that a write waits for its stream
	more  chan struct{} // holds one token: the queue or closed has changed
	done  chan struct{} // closed when all is written that will be

	mu        sync.Mutex // guards all below; not held while something is written
	queue     []pending
	unread    int              // bytes in queue, and of what is being written
	stuck     bool             // the stream has not taken something for long, and nobody waits
	dropped   int              // writes, since the last report
	report    func(writes int) // tells how many were dropped; nil for nobody
	reporting bool             // what is written now may be the report, and is taken
	closed    bool             // nothing more is taken
}

// A pending is one write that the stream has not got yet.
type pending struct {
	text    []byte
	written chan struct{} // closed when it has
}

func newLossyWriter(out io.Writer, limit int) *lossyWriter {
	l := &lossyWriter{
		out: out, limit: limit, delay: lossyDelay, more: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go l.drain() // ends with close, which waits for it but not for long
	return l
}

// Write implements io.Writer. It takes each write whole, or drops it.
func (l *lossyWriter) Write(text []byte) (int, error) {
	if p, wait := l.put(text); wait && !closedWithin(p.written, l.delay) {
		l.mu.Lock()
		l.stuck = l.unread > 0
		l.mu.Unlock()
	}
	return len(text), nil
}

// put queues a write or drops it, and reports whether it is worth waiting for.
func (l *lossyWriter) put(text []byte) (p pending, wait bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.unread > 0 && l.unread+len(text) > l.limit
	if l.closed || full && !l.reporting {
		l.dropped++
		return p, false
	}
	p = pending{append([]byte(nil), text...), make(chan struct{})}
	l.queue = append(l.queue, p)
	l.unread += len(text)
	l.wake()
	return p, !l.stuck && !l.reporting // the report comes from who writes
}

// closedWithin waits for a channel to be closed, and reports whether it was.
func closedWithin(ch <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ch:
		return true
	case <-timer.C:
		return false
	}
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
	for _, p := range queue {
		// Where else could an error of standard error be told?
		_, _ = l.out.Write(p.text)
		l.mu.Lock()
		l.unread -= len(p.text)
		l.stuck = l.stuck && l.unread > 0
		l.mu.Unlock()
		close(p.written)
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
	closedWithin(l.done, grace)
}
