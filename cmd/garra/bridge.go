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
	"github.com/garraia/garra/protocol"
)

const (
	reconnectFor   = 30 * time.Second       // a gateway that went may come back
	reconnectEvery = 200 * time.Millisecond // tries meanwhile
)

// A bridge carries a client's frames to the running gateway and back. When the
// gateway goes, calls in flight are answered with an error, and the handshake is
// made again with the next one, unseen by the client.
type bridge struct {
	client *adminapi.Client
	server string
	log    zerolog.Logger

	mu      sync.Mutex           // guards all below, and writing to the client
	out     io.Writer            // to the client
	conn    net.Conn             // to the gateway; nil while there is none
	running map[protocol.ID]bool // the client's requests
	hello   []byte               // the client's initialize, to be repeated
	helloID protocol.ID
	silent  bool // the answer to hello is not for the client
}

func newBridge(client *adminapi.Client, server string, log zerolog.Logger) *bridge {
	return &bridge{client: client, server: server, log: log, running: make(map[protocol.ID]bool)}
}

// run serves the client until it closes its side, ctx ends, or the gateway stays
// away for too long.
func (b *bridge) run(ctx context.Context, in io.Reader, out io.Writer) error {
	b.out = out
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conn, from, err := b.client.Attach(ctx, b.server)
	if err != nil {
		return err
	}
	b.conn = conn
	stop := context.AfterFunc(ctx, b.hangUp)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.down(ctx, from) }() // ends with ctx, or when the gateway stays away
	go func() { cancel(b.up(in)) }()          // ends with in; on ctx's end it is left behind
	select {
	case err = <-done:
	case <-ctx.Done():
		err = <-done
	}
	if cause := context.Cause(ctx); errors.Is(cause, io.EOF) {
		return nil
	} else if cause != nil {
		return cause
	}
	return err
}

// hangUp ends the connection.
func (b *bridge) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		b.conn.Close()
	}
}

// up carries the client's frames to the gateway. It always returns an error,
// io.EOF when the client is done and everything it asked is answered.
func (b *bridge) up(in io.Reader) error {
	frames := protocol.NewReader(in, 0)
	for {
		frame, err := frames.Next()
		if _, ok := errors.AsType[*protocol.TooLargeError](err); ok {
			b.log.Warn().Err(err).Msg("dropped")
			continue
		}
		if errors.Is(err, io.EOF) {
			b.drain()
			return io.EOF
		}
		if err != nil {
			return err
		}
		b.forward(frame)
	}
}

// drain half-closes the connection: the gateway answers what was asked and ends.
func (b *bridge) drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.conn.(interface{ CloseWrite() error }); ok {
		// A connection that is gone already has nothing to drain.
		_ = c.CloseWrite()
	}
}

// forward sends one frame, and notes the request that it is.
func (b *bridge) forward(frame []byte) {
	m, err := protocol.Parse(frame)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && m.IsRequest() {
		b.running[m.ID] = true
		if m.Method == protocol.MethodInitialize {
			b.hello, b.helloID = frame, m.ID
		}
	}
	if b.conn == nil {
		b.refuseLocked(m)
		return
	}
	// A gateway that went shows at the reading side, which answers the request.
	_, _ = b.conn.Write(append(frame, '\n'))
}

// refuseLocked answers a request that can't be sent.
func (b *bridge) refuseLocked(m *protocol.Message) {
	if m == nil || !m.IsRequest() {
		return
	}
	delete(b.running, m.ID)
	b.writeLocked(protocol.NewError(m.ID, protocol.Errorf(protocol.CodeInternal,
		"the gateway is away; garra tries to reach it again")))
}

func (b *bridge) writeLocked(m *protocol.Message) {
	// A client that is gone ends the bridge by its closed input.
	_, _ = b.out.Write(append(m.Append(nil), '\n'))
}

// down carries the gateway's frames to the client, over one connection after
// another.
func (b *bridge) down(ctx context.Context, from io.Reader) error {
	for {
		b.carry(from)
		b.lost()
		if ctx.Err() != nil {
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
		if err != nil {
			return
		}
		b.deliver(frame)
	}
}

// deliver hands one frame to the client.
func (b *bridge) deliver(frame []byte) {
	m, err := protocol.Parse(frame)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && m.IsResponse() {
		delete(b.running, m.ID)
		if b.silent && m.ID == b.helloID {
			b.silent = false
			return
		}
	}
	_, _ = b.out.Write(append(frame, '\n')) // as in writeLocked
}

// lost answers what was in flight when the connection ended.
func (b *bridge) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn.Close()
	b.conn = nil
	for id := range b.running {
		b.writeLocked(protocol.NewError(id, protocol.Errorf(protocol.CodeInternal,
			"the gateway ended during the call; it is not known whether the call was carried out")))
	}
	clear(b.running)
}

// reconnect waits for a gateway and repeats the client's handshake.
func (b *bridge) reconnect(ctx context.Context) (io.Reader, error) {
	ctx, cancel := context.WithTimeout(ctx, reconnectFor)
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
			return nil, fmt.Errorf("the gateway did not come back within %s: %w", reconnectFor, err)
		}
	}
}

// greet takes a new connection into use, as the client that was greeted before.
func (b *bridge) greet(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = conn
	if b.hello == nil {
		return
	}
	b.silent = true
	initialized := protocol.NewNotification(protocol.NoteInitialized, nil)
	// A connection that ends again at once shows at the reading side.
	_, _ = fmt.Fprintf(conn, "%s\n%s\n", b.hello, initialized.Append(nil))
}
