// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/garraia/garra/protocol"
)

const (
	streamQueueBytes = 16 << 20  // of messages that wait for a client
	unreadBytes      = 256 << 10 // of them while no client is connected to a session's own stream
	eventCost        = 96        // bytes that a message takes beyond its text
	replayEvents     = 256       // that are kept after they were sent
	replayBytes      = 1 << 20   // and how much of them
	maxStreams       = 64        // of a session that are kept for a client that lost its connection
	backlogBytes     = 64 << 20  // of a session's messages that are kept for clients that are not connected
	keptBytes        = 256 << 20 // and of those of all sessions
)

// An event is one message on a stream, numbered from 1.
type event struct {
	seq    uint64
	pieces [][]byte // of the message, on one line
	size   int      // of it in bytes
	answer bool     // it is a response
	code   int      // of an error
}

// newEvent makes an event of a message.
func newEvent(m *protocol.Message) event {
	e := event{pieces: m.Pieces(), answer: m.IsResponse()}
	for _, piece := range e.pieces {
		e.size += len(piece)
	}
	if m.Error != nil {
		e.code = protocol.ParseError(m.Error).Code
	}
	return e
}

// A stream is the messages that lead to the client over one response body: of
// one POST, or the session's own. A client that lost the connection reads on
// behind the last event that it has seen (MCP specification, "Transports",
// resumability). It implements outlet and is safe for concurrent use.
type stream struct {
	id      string
	age     uint64   // the older stream has the smaller one
	backlog *backlog // of the session
	onEvent func()   // is told that something but an answer came; nil for nobody

	mu      sync.Mutex // guards all below
	events  []event    // oldest first: those to be replayed, then those not sent yet
	bytes   int
	last    uint64 // of all events
	sent    uint64 // the newest one that a reader took
	open    int    // answers that are still to come; -1 for a stream without an end
	reader  int    // counts readers: a newer one takes over
	oneWay  bool   // the client takes one answer and no events
	reading int    // clients that are connected
	dropped bool   // nobody can ask for it any more
	more    *signal
}

func newStream(id string, open int, held *backlog) *stream {
	return &stream{id: id, open: open, backlog: held, more: newSignal()}
}

// push implements outlet. A request is taken only if somebody is there to
// answer it: the server that asks shall not wait for nothing. An answer to a
// client that has gone is kept as long as there is room for it.
func (t *stream) push(m *protocol.Message) bool {
	e := newEvent(m)
	t.mu.Lock()
	if e.answer && t.reading == 0 && t.backlog.load()+e.size > backlogBytes {
		e = newEvent(protocol.NewError(m.ID, protocol.Errorf(protocol.CodeInternal,
			"the answer of %d bytes was dropped: its client has gone, and so much waits for it already", e.size)))
	}
	deaf := t.oneWay || (t.open < 0 && t.reading == 0)
	room := streamQueueBytes
	if t.open < 0 && t.reading == 0 {
		room = unreadBytes
	}
	taken := e.answer || (t.bytes+e.size+eventCost <= room && !(deaf && m.IsRequest()))
	if taken && !t.dropped {
		t.last++
		e.seq = t.last
		t.events = append(t.events, e)
		t.holdLocked(e.size + eventCost)
	}
	if e.answer && t.open > 0 {
		t.open--
	}
	kept := t.reading == 0
	t.mu.Unlock()
	if kept {
		t.backlog.bound()
	}
	if taken && !e.answer && t.onEvent != nil {
		t.onEvent()
	}
	t.more.fire()
	return taken
}

// answer returns the answer that was pushed, if there is one.
func (t *stream) answer() (e event, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.events, func(e event) bool { return e.answer })
	if i < 0 {
		return event{}, false
	}
	return t.events[i], true
}

// holdLocked counts bytes that came, or went when n is negative.
func (t *stream) holdLocked(n int) {
	t.bytes += n
	if t.reading == 0 {
		t.backlog.add(n)
	}
}

// drop forgets what the stream holds, for good.
func (t *stream) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped = true
	t.emptyLocked()
}

// emptyLocked forgets what the stream holds.
func (t *stream) emptyLocked() {
	t.events = nil
	t.holdLocked(-t.bytes)
}

// dropUnread is drop for a stream that no client is connected to, or reports false.
// The stream without an end only forgets: its client hears of what comes later.
func (t *stream) dropUnread() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading > 0 {
		return false
	}
	t.dropped = t.open >= 0
	t.emptyLocked()
	return true
}

// keeps reports whether the stream holds something for a client that is not
// connected, and whether it waits for more.
func (t *stream) keeps() (something, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reading == 0 && t.bytes > 0, t.open != 0
}

// giveUp ends the wait for an answer that will not come, since the client has
// cancelled its request.
func (t *stream) giveUp(protocol.ID) {
	t.mu.Lock()
	t.open--
	t.mu.Unlock()
	t.more.fire()
}

// isRead reports whether a client is connected to the stream.
func (t *stream) isRead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reading > 0
}

// connected counts clients that are connected; leave it with -1. What a stream
// holds is kept for somebody while there are none.
func (t *stream) connected(n int) {
	t.mu.Lock()
	before := t.reading
	t.reading += n
	left := before > 0 && t.reading == 0
	switch {
	case left:
		t.backlog.add(t.bytes)
	case before == 0 && t.reading > 0:
		t.backlog.add(-t.bytes)
	}
	t.mu.Unlock()
	if left {
		t.backlog.bound()
	}
}

// finish ends a stream that has no end of its own.
func (t *stream) finish() {
	t.mu.Lock()
	t.open = 0
	t.mu.Unlock()
	t.more.fire()
}

// attach makes the caller the stream's one reader.
func (t *stream) attach() (reader int) {
	t.mu.Lock()
	t.reader++
	reader = t.reader
	t.mu.Unlock()
	t.more.fire()
	return reader
}

// next waits for events behind seq. done is true when there will be no more,
// or when another reader took over; both are empty when ctx ended.
func (t *stream) next(ctx context.Context, reader int, seq uint64) (events []event, done bool) {
	for {
		more := t.more.wait()
		t.mu.Lock()
		t.trim(seq)
		i := slices.IndexFunc(t.events, func(e event) bool { return e.seq > seq })
		if i >= 0 {
			events = slices.Clone(t.events[i:])
		}
		done = t.reader != reader || t.open == 0
		t.mu.Unlock()
		if len(events) > 0 || done {
			return events, done
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// trim forgets old events that were sent, beyond what is kept to be replayed.
func (t *stream) trim(sent uint64) {
	t.sent = max(t.sent, sent)
	drop := 0
	for drop < len(t.events) && t.events[drop].seq <= t.sent &&
		(len(t.events)-drop > replayEvents || t.bytes > replayBytes) {
		t.holdLocked(-t.events[drop].size - eventCost)
		drop++
	}
	if drop > 0 {
		t.events = slices.Clone(t.events[drop:])
	}
}

// abandoned reports whether every answer was pushed and nobody is connected to
// take them.
func (t *stream) abandoned() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open == 0 && t.reading == 0
}

// has reports whether an event of that number was ever on the stream.
func (t *stream) has(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return seq <= t.last
}

// finished reports whether every answer was pushed.
func (t *stream) finished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open == 0
}

// reads reports whether the reader is still the stream's one.
func (t *stream) reads(reader int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reader == reader
}

// over reports whether the reader has seen the end of the stream.
func (t *stream) over(reader int) bool { return t.reads(reader) && t.finished() }

// taken is the newest event that a reader took.
func (t *stream) taken() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent
}

// eventID names an event in a way that leads back to its stream.
func eventID(stream string, seq uint64) string { return stream + "-" + strconv.FormatUint(seq, 10) }

// parseEventID is the reverse of eventID.
func parseEventID(id string) (stream string, seq uint64, err error) {
	stream, number, ok := strings.Cut(id, "-")
	if !ok {
		return "", 0, fmt.Errorf("event id %.40q is none of this session", id)
	}
	seq, err = strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("event id %.40q is none of this session", id)
	}
	return stream, seq, nil
}
