// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/garraia/garra/protocol"
)

// A Source is one upstream MCP server, of whatever kind. Its methods are safe
// for concurrent use and never block beyond their context.
type Source interface {
	// Status returns what is known at this moment; it never waits.
	Status() Status
	// Hello waits until the source is ready, waking it where policy lets a call
	// do that, and returns how it introduced itself. It fails with a *Failure.
	Hello(ctx context.Context) (*Hello, error)
	// Call forwards one request and returns its result as the server wrote it.
	// It waits as Hello does. An error that the server answered is a
	// *protocol.Error with the server's own text; every other one is a *Failure.
	// A context that ends early cancels the request at the server.
	Call(ctx context.Context, call *Call) (protocol.Raw, error)
	// Notify sends a notification, and does nothing when the source isn't ready.
	Notify(method string, params protocol.Raw)
}

// A Call is one request for a source.
type Call struct {
	Method string
	Params protocol.Raw // nil when absent
	Client Client       // who asked; nil when it is garra itself
	Asker  Asker        // how the params are written, and what that client can do
	// Progress is the client's own token, zero when it wants no progress. The
	// source replaces it on the way and puts it back into what it passes on.
	Progress protocol.ID
	// Timeout bounds the call, restarted by progress; 0 is the source's own. It
	// is counted from Began, or from now when that is zero.
	Timeout time.Duration
	Began   time.Time
}

// Tokened returns the params with a progress token of the source's own, which is
// the number of the request, in the place of the client's.
func (c *Call) Tokened(number uint64) protocol.Raw {
	if c.Progress.IsZero() {
		return c.Params
	}
	params, err := protocol.ParseObject(c.Params)
	if err != nil {
		return c.Params
	}
	meta, err := protocol.ParseObject(params.Get("_meta"))
	if err != nil {
		return c.Params
	}
	meta.Set("progressToken", protocol.NumberID(number).Raw())
	params.Set("_meta", meta.Raw())
	return params.Raw()
}

// An Asker is what a source has to know of a call's client to speak to a server
// of either era. The zero Asker is garra itself.
type Asker struct {
	// Stateless: the params hold the client's envelope, as since 2026-07-28. A
	// source whose server is of the other era takes it out, or puts one in.
	Stateless    bool
	Capabilities protocol.Raw // of the client; nil when it declared none
	LogLevel     string       // empty when it wants no log messages
}

// A Client is who a call came from: the way back for what a source says while
// the call runs. Methods are safe for concurrent use.
type Client interface {
	// Session tells clients apart; calls of one session have equal values.
	Session() string
	// Holder names who a process is for where each client has one: equal for calls
	// that have the same.
	Holder() string
	// Notify passes a notification on, related to the call that is running. It
	// doesn't block on a slow client.
	Notify(method string, params protocol.Raw)
	// Ask passes a request on and waits for the answer. A client that can't be
	// asked, or doesn't know the method, gives a *protocol.Error at once.
	Ask(ctx context.Context, method string, params protocol.Raw) (protocol.Raw, error)
}

// A Hello is how a server introduced itself.
type Hello struct {
	Result       protocol.Raw      // of initialize or server/discover, as it was written
	Revision     protocol.Revision // that was negotiated
	Capabilities protocol.Raw      // nil when it declared none
	Instructions string
	Generation   uint64 // counts the processes or connections of this source
}

// Declares reports whether the server declared a capability, such as "tools".
func (h *Hello) Declares(capability string) bool {
	v := h.capability(capability)
	return v != nil && v.Kind() != 'n'
}

// ServerInfo is the server's name and version as it wrote them, nil when it did not.
func (h *Hello) ServerInfo() protocol.Raw {
	result, err := protocol.ParseObject(h.Result)
	if err != nil {
		return nil
	}
	if info := result.Get("serverInfo"); info != nil {
		return info
	}
	return protocol.MetaValue(h.Result, protocol.MetaServerInfo)
}

// DeclaresChanges reports whether the server said that it announces changes of
// its tools, prompts or resources.
func (h *Hello) DeclaresChanges(capability string) bool {
	details, err := protocol.ParseObject(h.capability(capability))
	return err == nil && string(details.Get("listChanged")) == "true"
}

func (h *Hello) capability(name string) protocol.Raw {
	caps, err := protocol.ParseObject(h.Capabilities)
	if err != nil {
		return nil
	}
	return caps.Get(name)
}

// A Controller is a source that a person can start and stop. Each method waits
// for the outcome; what went wrong is a *Failure.
type Controller interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
}

// A Forker is a source that can have a process, or a session, for each client.
// Methods are safe for concurrent use.
type Forker interface {
	// Fork returns what is the holder's own, and makes it when it isn't there. It
	// fails when too many have one, or the server is not to run.
	Fork(holder string) (Source, *Failure)
	// Held returns what the holder has, nil when that is nothing.
	Held(holder string) Source
	// Release ends what the holder has.
	Release(holder string)
	// Holders returns all that have something.
	Holders() []string
}

// A Meter is a source that can tell how much memory its server uses.
type Meter interface {
	// UsedMemory returns how many bytes the process of the server and all that it
	// started use, and false when nobody can tell. It takes some milliseconds.
	UsedMemory() (bytes int64, ok bool)
}

// A Logger is a source that keeps what its server writes to standard error.
type Logger interface {
	// Logs returns the lines after seq (0 for all that are kept), and a channel
	// that is closed when there are more.
	Logs(seq uint64) ([]Line, <-chan struct{})
}
