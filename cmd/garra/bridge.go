// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	reconnectFor   = 30 * time.Second       // a gateway that went may come back
	reconnectEvery = 200 * time.Millisecond // tries meanwhile
	maxHeld        = 64 << 20               // bytes of a client that are kept while it is greeted again
	unreadLimit    = 10 * time.Second       // for a client that is done to read some of its answers
	unreadEvery    = time.Second            // how often is looked whether it has
	stopGrace      = 2 * time.Second        // for the end of a bridge that is to stop
)

// A bridge carries a client's frames to the running gateway and back. When the
// gateway goes, calls in flight are answered with an error. The next one is told
// what it must know of the client, unseen by that, which hears that lists may have
// changed.
type bridge struct {
	client   *adminapi.Client
	server   string
	log      zerolog.Logger
	patience time.Duration // how long a gateway may stay away
	ended    chan struct{} // closed when the client has nothing more to say

	out *clientOut // its lock is taken after mu

	mu       sync.Mutex                     // guards all below
	conn     net.Conn                       // to the gateway; nil while there is none
	queue    [][]byte                       // frames for it that wait to be written
	queued   int                            // bytes of them, and of what is being written
	changed  *sync.Cond                     // on mu: conn, queue, queued, greeting or closed have
	running  map[protocol.ID]gateway.Failed // the client's requests, should they fail
	memory   *memory                        // of the client
	unknown  bool                           // to the gateway, which refused the repeated hello; to be said again
	greeting bool                           // the answer to a repeated hello is due, and not for the client
	held     [][]byte                       // of the client, until that answer is there
	heldSize int                            // bytes of held
	closed   bool                           // the client has nothing more to say
}

func newBridge(client *adminapi.Client, server string, log zerolog.Logger) *bridge {
	b := &bridge{
		client: client, server: server, log: log, patience: reconnectFor,
		running: make(map[protocol.ID]gateway.Failed), memory: newMemory(), ended: make(chan struct{}),
	}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// run serves the client until it has closed its side and its requests are
// answered, ctx ends, or the gateway stays away for too long.
func (b *bridge) run(ctx context.Context, in io.Reader, out io.Writer) error {
	b.out = newClientOut(out)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, from, err := b.client.Attach(ctx, b.server)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.useLocked(conn)
	b.mu.Unlock()
	stop := context.AfterFunc(ctx, b.hangUp)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.down(ctx, from) }() // ends with ctx, with the client, or when the gateway stays away
	go func() {                               // ends with in; on ctx's end it is left behind
		if err := b.up(in); err != nil {
			cancel(err)
		}
	}()
	err = b.await(ctx, done)
	if cause := context.Cause(ctx); errors.Is(cause, io.EOF) {
		return nil
	} else if cause != nil {
		return cause
	}
	return err
}

// await waits for the gateway's side to end. A client that is done gets its answers,
// each within the time that its request has at the gateway, unless it reads nothing
// more.
func (b *bridge) await(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	case <-b.ended:
	}
	tick := time.NewTicker(unreadEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			select {
			case err := <-done:
				return err
			case <-time.After(stopGrace): // a client that doesn't read holds it up
				return nil
			}
		case <-tick.C:
			if b.out.unreadFor(unreadLimit) {
				return nil
			}
		}
	}
}

// hangUp ends the connection.
func (b *bridge) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.Close()
	}
}

// up carries the client's frames to the gateway. It returns nil when the client
// is done and the gateway was told, io.EOF when there is none to be told.
func (b *bridge) up(in io.Reader) error {
	frames := protocol.NewReader(in, 0)
	for {
		b.awaitRoom()
		frame, err := frames.Next()
		if tooLarge, ok := errors.AsType[*protocol.TooLargeError](err); ok {
			b.refuse(tooLarge)
			continue
		}
		if errors.Is(err, io.EOF) {
			close(b.ended)
			if b.drain() {
				return nil
			}
		}
		if err != nil {
			return err
		}
		b.forward(frame)
	}
}

// drain half-closes the connection: the gateway answers what was asked and ends
// it. It reports whether there is one.
func (b *bridge) drain() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.changed.Broadcast()
	return b.conn != nil
}

// messagesOf returns the messages in a frame: one, or those of a batch, which one
// revision has. What is no message is the gateway's to answer.
func messagesOf(frame []byte) (list []*protocol.Message) {
	frames, isBatch, err := protocol.ParseBatch(frame)
	if !isBatch {
		frames = []protocol.Raw{frame}
	}
	if err != nil {
		return nil
	}
	for _, f := range frames {
		if m, err := protocol.Parse(f); err == nil {
			list = append(list, m)
		}
	}
	return list
}

// forward sends one frame, and notes the requests in it.
func (b *bridge) forward(frame []byte) {
	messages := messagesOf(frame)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		b.saidLocked(m, frame)
	}
	switch {
	case b.conn == nil, b.greeting && b.heldSize+len(frame) > maxHeld:
		b.refuseLocked(messages, &source.Failure{
			Code: source.GatewayAway, Server: b.server, Message: "the gateway is away; garra tries to reach it again",
			Fix: "call again once it is back; `garra serve` starts it",
		})
	case b.greeting:
		b.held = append(b.held, frame)
		b.heldSize += len(frame)
	default:
		b.sendLocked(frame)
	}
}

// saidLocked notes what a message of the client means to the bridge. A request
// that the client cancels is answered by nobody.
func (b *bridge) saidLocked(m *protocol.Message, frame []byte) {
	switch {
	case m.Method == protocol.NoteCancelled:
		if id, err := protocol.ParseID(member(m.Params, "requestId")); err == nil {
			delete(b.running, id)
		}
	case m.IsRequest():
		b.running[m.ID] = gateway.FailedRequest(m, b.server)
		b.memory.said(m, frame)
		if b.unknown && b.conn != nil && m.Method != protocol.MethodInitialize {
			b.greetLocked()
		}
	}
}

// sendLocked has a frame written. It doesn't wait: a gateway that doesn't read now,
// since its answers aren't read, must not keep those from being read.
func (b *bridge) sendLocked(frame []byte) {
	b.queue = append(b.queue, append(frame, '\n'))
	b.queued += len(frame) + 1
	b.changed.Broadcast()
}

// awaitRoom waits until the gateway has read so much that the client may say more.
func (b *bridge) awaitRoom() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.conn != nil && b.queued > maxHeld {
		b.changed.Wait()
	}
}

// useLocked takes a connection into use, and begins to write to it.
func (b *bridge) useLocked(conn net.Conn) {
	b.conn, b.queue, b.queued = conn, nil, 0
	go b.writeTo(conn) // ends with the connection, or when all is said
}

// writeTo writes what is queued for a connection, until it is no longer in use, or
// the client is done and all of that is written. A gateway that went shows at the
// reading side, which answers the requests.
func (b *bridge) writeTo(conn net.Conn) {
	for {
		b.mu.Lock()
		for b.conn == conn && len(b.queue) == 0 && !(b.closed && !b.greeting) {
			b.changed.Wait()
		}
		if b.conn != conn {
			b.mu.Unlock()
			return
		}
		frames, last := b.queue, len(b.queue) == 0
		b.queue = nil
		b.mu.Unlock()
		if last {
			if c, ok := conn.(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite() // an error is that the gateway went
			}
			return
		}
		size := 0
		for _, frame := range frames {
			size += len(frame)
		}
		if _, err := (*net.Buffers)(&frames).WriteTo(conn); err != nil {
			return
		}
		b.mu.Lock()
		if b.conn == conn {
			b.queued -= size
			b.changed.Broadcast()
		}
		b.mu.Unlock()
	}
}

// refuseLocked answers requests that can't be sent.
func (b *bridge) refuseLocked(messages []*protocol.Message, err error) {
	for _, m := range messages {
		r, ok := b.running[m.ID]
		if !ok || !m.IsRequest() { // it was cancelled meanwhile, or wants no answer
			continue
		}
		delete(b.running, m.ID)
		if f, ok := errors.AsType[*source.Failure](err); ok {
			b.answerLocked(r.Answer(f))
		} else if e, ok := errors.AsType[*protocol.Error](err); ok {
			b.answerLocked(protocol.NewError(m.ID, e))
		}
	}
}

// refuse answers a request of the client that is too large to be passed on. An
// answer that is too large is dropped: who asked for it will not wait for ever.
func (b *bridge) refuse(e *protocol.TooLargeError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Reply || e.ID.IsZero() {
		b.log.Warn().Err(e).Msg("dropped")
		return
	}
	b.answerLocked(gateway.TooLarge(e))
}

// answerLocked says something of the bridge's own to the client.
func (b *bridge) answerLocked(m *protocol.Message) { b.out.write(m.Append(nil)) }

// down carries the gateway's frames to the client, over one connection after
// another.
func (b *bridge) down(ctx context.Context, from io.Reader) error {
	for {
		b.carry(from)
		if finished := b.lost(); finished || ctx.Err() != nil {
			return nil
		}
		b.log.Warn().Msg("the gateway is away; trying to reach it again")
		var err error
		if from, err = b.reconnect(ctx); err != nil {
			return err
		}
	}
}

// carry copies frames until the connection ends.
func (b *bridge) carry(from io.Reader) {
	frames := protocol.NewReader(from, 0)
	for {
		frame, err := frames.Next()
		if tooLarge, ok := errors.AsType[*protocol.TooLargeError](err); ok {
			b.fail(tooLarge)
			continue
		}
		if err != nil {
			return
		}
		b.deliver(frame)
	}
}

// deliver hands one frame to the client.
func (b *bridge) deliver(frame []byte) {
	forClient, news := b.note(frame)
	if forClient {
		b.out.write(frame)
	}
	for _, method := range news {
		b.out.write(protocol.NewNotification(method, nil).Append(nil))
	}
}

// note takes an answer off the list of those that are due. It reports whether the
// frame is for the client, and which notifications are due to that.
func (b *bridge) note(frame []byte) (forClient bool, news []string) {
	m, err := protocol.Parse(frame)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || !m.IsResponse() {
		return true, nil
	}
	delete(b.running, m.ID)
	switch {
	case b.greeting && m.ID == b.memory.helloID:
		return false, b.greetedLocked(m.Error)
	case b.memory.owns(m.ID):
		return false, nil
	}
	b.memory.answered(m)
	return true, nil
}

// fail answers a request whose answer is too large to be passed on.
func (b *bridge) fail(e *protocol.TooLargeError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.running[e.ID]; ok && e.Reply {
		delete(b.running, e.ID)
		b.answerLocked(r.Answer(&source.Failure{
			Code: source.FrameTooLarge, Server: b.server, Message: e.Error(), Fix: "ask for less at a time",
		}))
	}
}

// lost answers what was in flight when the connection ended, and reports whether
// the client is done.
func (b *bridge) lost() (finished bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn.Close()
	b.conn, b.queue, b.queued = nil, nil, 0
	b.changed.Broadcast()
	for _, r := range b.running {
		b.answerLocked(r.Answer(&source.Failure{
			Code: source.GatewayEnded, Server: b.server,
			Message: "the gateway ended during the call; it is not known whether that was done",
			Fix:     "look whether it was before calling again",
		}))
	}
	clear(b.running)
	b.memory.lost()
	b.greeting, b.held, b.heldSize = false, nil, 0
	return b.closed
}

// reconnect waits for a gateway and repeats the client's handshake.
func (b *bridge) reconnect(ctx context.Context) (io.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	tick := time.NewTicker(reconnectEvery)
	defer tick.Stop()
	for {
		conn, from, err := b.client.Attach(ctx, b.server)
		if err == nil {
			b.greet(conn)
			return from, nil
		}
		if _, refused := errors.AsType[*adminapi.Error](err); refused {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the gateway did not come back within %s: %w", b.patience, err)
		}
	}
}

// greet takes a new connection into use, as the client that was greeted before.
func (b *bridge) greet(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.useLocked(conn)
	if b.memory.hello != nil {
		b.greetLocked()
	}
}

// greetLocked repeats the client's handshake.
func (b *bridge) greetLocked() {
	b.unknown, b.greeting = false, true
	b.sendLocked(b.memory.hello)
}

// greetedLocked ends the repeated handshake: what the client said before and
// meanwhile is sent now, since a gateway takes nothing before it, or answered with
// the error that the gateway had for the handshake. It returns what the client
// should be notified of.
func (b *bridge) greetedLocked(refusal protocol.Raw) (news []string) {
	b.greeting, b.unknown = false, refusal != nil
	if !b.unknown {
		news = b.memory.news
		b.sendLocked(protocol.NewNotification(protocol.NoteInitialized, nil).Append(nil))
		for _, m := range b.memory.repeated() {
			b.sendLocked(m.Append(nil))
		}
	}
	for _, frame := range b.held {
		if b.unknown {
			b.refuseLocked(messagesOf(frame), asFailure(refusal))
		} else {
			b.sendLocked(frame)
		}
	}
	b.held, b.heldSize = nil, 0
	b.changed.Broadcast() // it may be all that is to be said
	return news
}
