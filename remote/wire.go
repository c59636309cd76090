// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/garraia/garra/protocol"
)

// Short names for what appears in every signature here.
type (
	// Raw is JSON text.
	Raw = protocol.Raw
	// Context is context.Context.
	Context = context.Context
)

// A wire carries the messages of one session over HTTP. What the server sends
// goes to an inlet. Its methods are safe for concurrent use, but for open, which
// comes first.
type wire interface {
	// open gets ready to send. It is given up with ctx.
	open(ctx Context) *mishap
	// send sends one message. Of a request it returns nil when the inlet has the
	// answer or will get it, and else why there will be none.
	send(ctx Context, p *parcel) *mishap
	// greeted is told that the handshake is over, and what was negotiated.
	greeted(revision protocol.Revision)
	// close tells the server that the session is over, within ctx. The inlet's
	// life has ended, or will.
	close(ctx Context)
}

// An inlet takes what comes over a wire. Nothing that is done with it may wait
// for the server or for a client.
type inlet interface {
	// take takes one message or batch; via is the call on whose stream it came,
	// nil when it was no call's.
	take(frame []byte, via *call)
	// tooLarge takes the beginning of a message that was dropped.
	tooLarge(beginning []byte, size int64, via *call)
	// check finds out whether the server is there, and ends the session if not.
	check()
	// oddity tells people of what the server does.
	oddity(message string)
	// goes runs a task beside everything else, which ends with alive; it returns
	// false when it is too late for that.
	goes(task func()) bool
	// alive is the life of the session.
	alive() Context
	// over ends the session.
	over(why *mishap)
}

// A parcel is a message on its way to the server.
type parcel struct {
	message *protocol.Message
	call    *call       // nil unless the message is a request
	header  http.Header // that goes with it; may be nil
	state   atomic.Int32
}

// The states of a parcel: it is waiting until somebody reads its content to
// write that on a connection, or until it is known that nobody will.
const (
	waiting int32 = iota
	sent
	abandoned
)

var errAbandoned = errors.New("the message is not to be sent any more")

// introduces reports whether the message asks the server to introduce itself. What
// it answers with a status of its own fault, it may answer otherwise in a moment.
func (p *parcel) introduces() bool {
	return p.message.Method == protocol.MethodInitialize || p.message.Method == protocol.MethodDiscover
}

// isStateless reports whether the message is a request of the stateless era to a
// server that has introduced itself.
func (p *parcel) isStateless() bool { return p.header != nil && !p.introduces() }

// abandon reports whether the server certainly didn't get the parcel, and makes
// sure that it won't.
func (p *parcel) abandon() bool {
	return p.state.CompareAndSwap(waiting, abandoned) || p.state.Load() == abandoned
}

// content returns the message as the body of a request, and a way to have it
// again.
func (p *parcel) content() (body io.ReadCloser, again func() (io.ReadCloser, error), size int64) {
	text := p.message.Append(make([]byte, 0, p.message.Size()))
	again = func() (io.ReadCloser, error) { return &content{p, bytes.NewReader(text)}, nil }
	body, _ = again()
	return body, again, int64(len(text))
}

// A content is the body of a request. Without it no request is complete, so that
// the first read decides whether the server may have got it.
type content struct {
	parcel *parcel
	text   *bytes.Reader
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (int, error) {
	if !c.parcel.state.CompareAndSwap(waiting, sent) && c.parcel.state.Load() == abandoned {
		return 0, errAbandoned
	}
	return c.text.Read(p)
}

// Close implements io.Closer.
func (c *content) Close() error { return nil }
