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
	pipeQueueBytes = 64 << 20         // of messages that a client on a pipe hasn't read yet; past it, it isn't heard
	drainTimeout   = 10 * time.Second // for requests that run when a client closes its side
)

// ServePipe serves one client over a pair of streams, as the stdio transport
// has it: a message a line. It returns nil when the client has closed its side
// and what it had asked is answered, and earlier when ctx ends. server is empty
// for the view of all servers.
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
		s.drain(drainTimeout)
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
			out.push(protocol.NewError(tooLarge.ID, protocol.Errorf(protocol.CodeInvalidRequest, "%v", err)))
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

// drain waits until no request runs any more.
func (s *Session) drain(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		idle := s.idle.wait()
		s.mu.Lock()
		left := s.active
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-idle:
		case <-timer.C:
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
		o.mu.Lock()
		pieces, closed, size := o.queue, o.closed, o.unread
		o.queue = nil
		o.mu.Unlock()
		if _, o.err = pieces.WriteTo(w); o.err != nil {
			return
		}
		o.mu.Lock()
		o.unread -= size
		o.less.Broadcast()
		o.mu.Unlock()
		if closed {
			return
		}
	}
}

// close writes what is left, giving a client that doesn't read a second.
func (o *pipeOutlet) close() {
	o.shut()
	o.wake()
	select {
	case <-o.broken:
	case <-time.After(time.Second):
	}
}

// shut ends the taking of messages.
func (o *pipeOutlet) shut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.less.Broadcast()
}
