// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A runner makes the runs of one server.
type runner struct {
	options *Options
	server  *Server
}

var _ lifecycle.Runner = (*runner)(nil)

// Run implements lifecycle.Runner: it connects, is there, takes its leave.
func (r *runner) Run(ctx Context, run *lifecycle.Run) lifecycle.Outcome {
	// Nothing of garra's environment reaches the server but what the entry names.
	run.Show(func(s *source.Status) { s.Env.Mode = source.EnvIsolated })
	to, failure := newTarget(run.Entry, r.options).resolve(ctx)
	if failure != nil {
		return lifecycle.Outcome{Failure: failure, Permanent: true}
	}
	if to.exposed() {
		run.Warn("its headers travel unencrypted, since its url is http; use https")
	}
	l, hello, m := r.connect(ctx, run)
	if m != nil {
		return lifecycle.Outcome{Failure: m.failure, Permanent: m.lasting}
	}
	run.Ready(l, hello)
	select {
	case <-ctx.Done():
		l.close(lifecycle.StoppedFailure(run.Entry.Name))
		return lifecycle.Outcome{}
	case <-l.life.Done():
	}
	m = l.asMishap()
	l.close(m.failure)
	return lifecycle.Outcome{Failure: m.failure, Permanent: m.lasting, Forgotten: m.forgotten}
}

// Obstacle implements lifecycle.Runner: it is what can't be resolved.
func (r *runner) Obstacle(ctx Context, entry *mcpconfig.Server) *source.Failure {
	_, failure := newTarget(entry, r.options).resolve(ctx)
	return failure
}

// Edited implements lifecycle.Runner.
func (r *runner) Edited(old, next *mcpconfig.Server) (replace bool) { return old.NeedsRestart(next) }

// ByHand implements lifecycle.Runner: it is a start as any other.
func (r *runner) ByHand(*mcpconfig.Server) *source.Failure { return nil }

// connect makes the handshake within the entry's timeout. An entry that doesn't
// say which transport it has is tried with streamable HTTP first; a server that
// refuses that as one of HTTP+SSE would is tried with HTTP+SSE (MCP
// specification, "Transports", backwards compatibility).
func (r *runner) connect(ctx Context, run *lifecycle.Run) (*link, *source.Hello, *mishap) {
	entry := run.Entry
	ctx, cancel := context.WithTimeout(ctx, entry.Timeout)
	defer cancel()
	c := &caller{
		target: newTarget(entry, r.options), limits: r.options.limits,
		client: newClient(r.options, entry.AllowPrivateAddresses),
	}
	streams := func(l *link) wire { return &streamable{caller: c, inlet: l} }
	older := func(l *link) wire { return &legacy{caller: c, inlet: l} }
	if entry.Transport == mcpconfig.SSE {
		return r.greet(ctx, c, older)
	}
	l, hello, m := r.greet(ctx, c, streams)
	if m == nil || !isOlder(m.status) || entry.Position("type") != entry.Origin {
		return l, hello, m
	}
	l, hello, worse := r.greet(ctx, c, older)
	if worse != nil {
		return nil, nil, m // what it said to the transport of today
	}
	run.Warn("it speaks only the older HTTP+SSE transport; type: sse in its entry saves a try at each start")
	return l, hello, nil
}

// isOlder reports whether a server that doesn't know streamable HTTP answers
// so to its initialize.
func isOlder(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// greet makes a link over one wire, and the handshake.
func (r *runner) greet(ctx Context, c *caller, over func(*link) wire) (*link, *source.Hello, *mishap) {
	entry := c.target.entry
	l := newLink(entry.Name, r.options, r.server.Trouble)
	l.scrub = c.target.scrub
	l.wire = over(l)
	hello, m := r.handshake(ctx, l, entry)
	if m == nil {
		return l, hello, nil
	}
	told := *m // others may be reading the mishap itself
	told.failure = r.inTime(ctx, entry, m.failure)
	l.close(told.failure)
	return nil, nil, &told
}

// inTime tells a start that took too long from one that was stopped.
func (r *runner) inTime(ctx Context, entry *mcpconfig.Server, f *source.Failure) *source.Failure {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) && f.Code != source.CallTimeout {
		return f
	}
	return &source.Failure{
		Code: source.CallTimeout, Server: entry.Name, Cause: f,
		Message: fmt.Sprintf("the server did not answer initialize within %s", entry.Timeout),
		Fix:     "raise timeoutSecs if it needs longer to start",
	}
}

// handshake opens the wire and makes the handshake of the protocol.
func (r *runner) handshake(ctx Context, l *link, entry *mcpconfig.Server) (*source.Hello, *mishap) {
	stop := context.AfterFunc(ctx, func() { // a wire that is being opened is given up with ctx
		if ctx.Err() != nil {
			l.over(&mishap{failure: source.Cancelled(ctx, entry.Name)})
		}
	})
	defer stop()
	if m := l.wire.open(ctx); m != nil {
		return nil, m
	}
	result, m := l.initialize(ctx, initializeParams(entry, r.options.Capabilities), from(entry.Timeout))
	if m != nil {
		return nil, m
	}
	hello, failure := readHello(entry.Name, result)
	if failure != nil {
		return nil, &mishap{failure: failure, lasting: true}
	}
	l.answered.Store(false) // that was no answer to a call
	l.wire.greeted(hello.Revision)
	ready := &parcel{message: protocol.NewNotification(protocol.NoteInitialized, nil)}
	if m := l.wire.send(ctx, ready); m != nil && (m.ends || ctx.Err() != nil) {
		return nil, m
	} else if m != nil {
		l.trouble("the server did not take " + protocol.NoteInitialized + ": " + m.failure.Message)
	}
	return hello, nil
}
