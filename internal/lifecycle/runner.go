// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// Short names for what appears in every signature here.
type (
	// Raw is JSON text.
	Raw = protocol.Raw
	// Context is context.Context.
	Context = context.Context
)

// A Runner makes the runs of one server. Only Run may take its time, and
// Obstacle; the others are called by the owner, which waits for them.
type Runner interface {
	// Run makes one run, tells r what becomes of it, and returns when nothing of
	// it is left, or is known to stay. Ending ctx stops it.
	Run(ctx Context, r *Run) Outcome
	// Obstacle returns what keeps the server from being started, nil when nothing
	// can be seen that would.
	Obstacle(ctx Context, entry *mcpconfig.Server) *source.Failure
	// Edited is told that the entry has another text now, and reports whether a
	// run of the old one has to be replaced.
	Edited(old, next *mcpconfig.Server) (replace bool)
	// ByHand is told that a person starts the server, and may refuse that.
	ByHand(entry *mcpconfig.Server) *source.Failure
}

// A Link is the way to a server over one run. It is safe for concurrent use.
type Link interface {
	// Call is as that of a source. The call has its Timeout, and when it Began.
	// One that certainly had no effect fails with an *Undelivered.
	Call(ctx Context, c *source.Call) (Raw, error)
	// Notify sends a notification without waiting for the server.
	Notify(method string, params Raw)
	// Answered reports whether the server has given a call a result.
	Answered() bool
}

// An Undelivered is the error of a call that certainly had no effect, so that it
// can be made again over the next link.
type Undelivered struct {
	Cause error // what the caller gets when it isn't made again
	// Forgotten: the server was there, and didn't know the session. A call that
	// meets this twice isn't made again, since that is no coincidence.
	Forgotten bool
}

// Error implements error.
func (u *Undelivered) Error() string { return "the call did not reach the server: " + u.Cause.Error() }

// Unwrap returns the cause.
func (u *Undelivered) Unwrap() error { return u.Cause }

// An Outcome is how a run ended.
type Outcome struct {
	Failure   *source.Failure // nil when it ended because it was told to
	Permanent bool            // trying again can't mend the cause
	Forgotten bool            // the server is there, and lost the session
	Began     time.Time       // when there was something that could end; zero when there never was
	Ending    source.Ending   // of the process, where there was one
	Leftover  <-chan struct{} // nil, unless something still runs: closed when that is gone
}

// A Run is one run as its runner sees it: what is to be run, and whom to tell
// what becomes of it.
type Run struct {
	Entry *mcpconfig.Server

	server     *Server
	generation uint64 // counts the runs of the server
}

// Warn tells people of something about this run, in the order of what happens to
// its server.
func (r *Run) Warn(message string) { r.tell(func(o *owner) { o.warn(message) }) }

// Show changes what people see of the server. The process id and the limits are
// forgotten when the run ends, the rest stays.
func (r *Run) Show(change func(*source.Status)) {
	r.tell(func(o *owner) {
		change(&o.status)
		o.publish()
	})
}

// Ready says that the server can be called over a link.
func (r *Run) Ready(link Link, hello *source.Hello) {
	hello.Generation = r.generation
	r.tell(func(o *owner) { o.ready(link, hello) })
}

// tell hands the owner a report, which does nothing when the run is over by then.
func (r *Run) tell(report func(*owner)) {
	select {
	case r.server.reports <- func(o *owner) {
		if o.generation == r.generation {
			report(o)
		}
	}:
	case <-r.server.done:
	}
}
