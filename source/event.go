// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"github.com/garraia/garra/protocol"
)

// An EventKind says what an [Event] tells.
type EventKind string

// The kinds of event.
const (
	EventState   EventKind = "state"   // the server's state changed
	EventWarning EventKind = "warning" // something a person should know
	EventNoise   EventKind = "noise"   // a line on standard output that is no message
)

// An Origin is where news come from: a server, or of one that has a process for
// each client that of one of them.
type Origin struct {
	Server string
	Holder string // of the process; empty for what all clients share
}

// An Event is one thing that happened to a server. Everything that people and
// programs see of it (logs, API, console) comes from this one stream.
type Event struct {
	Origin
	Time    time.Time
	Kind    EventKind
	From    State // of a state change
	State   State // after the event
	PID     int
	Message string
	Failure *Failure // of a change for the worse
}

// Hooks are told what happens. They are called from the goroutines that keep
// servers going and must not block. Any may be nil.
type Hooks struct {
	// Event gets every event. The changes of one server's state, and warnings
	// about its starts, come in order; noise may come beside them.
	Event func(Event)
	// Stderr gets every line that a server writes to standard error.
	Stderr func(server, line string)
	// Notification gets what a server says outside of any client's call.
	Notification func(from Origin, method string, params protocol.Raw)
	// Request answers what a server asks when no client's call caused it. It may
	// take its time. A *protocol.Error is passed on to the server.
	Request func(ctx context.Context, from Origin, method string, params protocol.Raw) (protocol.Raw, error)
}
