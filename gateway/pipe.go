// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
)

const (
	pipeQueueBytes = 64 << 20               // of messages that a client has not read; past it, it is not heard
	pipeStep       = 1 << 20                // bytes that are written in one go
	unreadLimit    = 10 * time.Second       // for a client that closed its side to read a step
	goneEvery      = 100 * time.Millisecond // how often is looked whether that client is still there
)

// ServePipe serves one client over a pair of streams, as the stdio transport
// has it: a message a line. It returns nil when the client has closed its side and
// has got the answers to what it had asked, each within the time that the request
// has; earlier when that client is gone or reads nothing more, and when ctx ends.
func (g *Gateway) ServePipe(ctx context.Context, in io.Reader, out io.Writer, client PipeClient) error {
	w := newPipeOutlet(out)
	s := g.open(g.view(client.Server), client.Principal, w)
	defer s.close()
	stop := context.AfterFunc(ctx, s.close)
	defer stop()

	ended := make(chan error, 1)
	go func() { ended <- s.readPipe(in, w) }() // ends with in; on ctx's end it is left behind
	var err error
	select {
	case err = <-ended:
		s.deafen()
		s.finish(w, client.Gone)
	case <-s.life.Done():
	case <-w.broken:
		err = w.err
	}
	w.close()
	return err
}

// A PipeClient is who is at the other end of a pipe.
type PipeClient struct {
	Server    string // the one server that it sees; empty for all
	Principal string // who it is, as authenticated
	// Gone reports whether nobody is left to read what is written. It is asked when
	// the client has closed its side; nil is never.
	Gone func() bool
}

// view returns the view of one server, or of all when server is empty.
func (g *Gateway) view(server string) view {
	if server == "" {
		return aggregate{g}
	}
	return single{g, server}
}

// readPipe takes the client's messages until there are no more.
func (s *Session) readPipe(in io.Reader, out *pipeOutlet) error {
	frames := protocol.NewReader(in, 0)
	for {
		out.awaitRoom()
		frame, err := frames.Next()
		if tooLarge, ok := errors.AsType[*protocol.TooLargeError](err); ok {
			out.push(TooLarge(tooLarge))
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.take(frame, out)
	}
}

// take handles one line of a client: a message, or a batch where the revision
// has them.
func (s *Session) take(frame []byte, out outlet) {
	messages, err := s.parse(frame)
	if err != nil {
		out.push(protocol.NewError(protocol.ID{}, parseError(err)))
		return
	}
	for _, m := range messages {
		s.receive(m, out)
	}
}

// parse reads what a client sent in one piece.
func (s *Session) parse(frame []byte) ([]*protocol.Message, error) {
	frames, isBatch, err := protocol.ParseBatch(frame)
	if !isBatch {
		frames = []Raw{frame}
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	allowed := s.revision.HasBatches()
	s.mu.Unlock()
	if isBatch && (!allowed || len(frames) == 0) {
		return nil, errNoBatch
	}
	messages := make([]*protocol.Message, 0, 1)
	for _, f := range frames {
		m, err := protocol.ParseStrict(f)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// errNoBatch refuses a batch outside of the one revision that has them.
var errNoBatch = errors.New("a batch, which the session's revision doesn't have, or an empty one")

// parseError is the answer to text that is no message: JSON-RPC tells text that
// is no JSON from JSON that is no request.
func parseError(err error) *protocol.Error {
	code := protocol.CodeInvalidRequest
	if protocol.IsSyntaxError(err) {
		code = protocol.CodeParse
	}
	return protocol.Errorf(code, "%v", err)
}

// finish waits until a client that has closed its side has got all its answers; one
// that is gone, or reads nothing more, is not waited for.
func (s *Session) finish(w *pipeOutlet, gone func() bool) {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	for {
		idle := s.idle.wait()
		s.mu.Lock()
		left := s.active
		s.mu.Unlock()
		if left == 0 {
			w.shut()
		}
		select {
		case <-idle:
		case <-tick.C:
			if w.unreadFor(unreadLimit) || gone != nil && gone() {
				return
			}
		case <-w.broken: // all is written, or it can't be
			return
		case <-s.life.Done():
			return
		}
	}
}

// A pipeOutlet writes messages to a stream, in a goroutine of its own since the
// client may not read. What it hasn't read is bounded in bytes: past the bound
// only the answers to what it has asked already are added.
type pipeOutlet struct {
	broken chan struct{} // closed when writing failed or close was called and all is written
	err    error         // valid once broken is closed

	more   chan struct{} // holds one token: the queue or closed changed
	mu     sync.Mutex    // guards all below
	queue  net.Buffers   // pieces of frames
	unread int           // bytes in queue, and of what is being written
	since  time.Time     // when the client last read some of that, or there was nothing
	closed bool          // nothing more is taken
	less   *sync.Cond    // on mu: unread or closed has changed
}

func newPipeOutlet(w io.Writer) *pipeOutlet {
	o := &pipeOutlet{broken: make(chan struct{}), more: make(chan struct{}, 1)}
	o.less = sync.NewCond(&o.mu)
	go o.write(w) // ends with close, or when the stream breaks
	return o
}

// push implements outlet. A response is always taken, since its request was.
func (o *pipeOutlet) push(m *protocol.Message) bool {
	frame, size := m.Pieces(), 0
	frame[len(frame)-1] = append(frame[len(frame)-1], '\n')
	for _, piece := range frame {
		size += len(piece)
	}
	o.mu.Lock()
	full := o.unread+size > pipeQueueBytes && o.unread > 0 && !m.IsResponse()
	taken := !full && !o.closed
	if taken {
		if o.unread == 0 {
			o.since = time.Now()
		}
		o.queue = append(o.queue, frame...)
		o.unread += size
	}
	o.mu.Unlock()
	o.wake()
	return taken
}

// awaitRoom waits until the client has read so much that it may ask for more.
func (o *pipeOutlet) awaitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.unread > pipeQueueBytes && !o.closed {
		o.less.Wait()
	}
}

func (o *pipeOutlet) wake() {
	select {
	case o.more <- struct{}{}:
	default: // the writer looks anyway
	}
}

// write writes what is queued until close.
func (o *pipeOutlet) write(w io.Writer) {
	defer close(o.broken)
	defer o.shut()
	for range o.more {
		for {
			pieces, size, closed := o.next()
			if size == 0 && closed {
				return
			}
			if size == 0 {
				break
			}
			if _, o.err = pieces.WriteTo(w); o.err != nil {
				return
			}
			o.wrote(size)
		}
	}
}

// next takes what is to be written in one go off the queue: no more than a client
// that reads slowly can take in a while.
func (o *pipeOutlet) next() (pieces net.Buffers, size int, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for n < len(o.queue) && size+len(o.queue[n]) <= pipeStep {
		size += len(o.queue[n])
		n++
	}
	pieces, o.queue = o.queue[:n:n], o.queue[n:]
	if size == 0 && len(o.queue) > 0 { // its first piece is too long
		size = pipeStep
		pieces, o.queue[0] = net.Buffers{o.queue[0][:size]}, o.queue[0][size:]
	}
	return pieces, size, o.closed
}

// wrote notes that the client has got something.
func (o *pipeOutlet) wrote(size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread -= size
	o.since = time.Now()
	o.less.Broadcast()
}

// unreadFor reports whether the client has read nothing for that long, although
// there was something to read.
func (o *pipeOutlet) unreadFor(limit time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.unread > 0 && time.Since(o.since) > limit
}

// close writes what is left, giving a client that doesn't read a second.
func (o *pipeOutlet) close() {
	o.shut()
	select {
	case <-o.broken:
	case <-time.After(time.Second):
	}
}

// shut ends the taking of messages; what was taken is still written.
func (o *pipeOutlet) shut() {
	o.mu.Lock()
	o.closed = true
	o.less.Broadcast()
	o.mu.Unlock()
	o.wake()
}
