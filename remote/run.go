// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A launcher makes one run and returns when that has ended; ending ctx stops it.
// There is one launcher; tests of the owner have another.
type launcher func(ctx Context, order order, report func(progress))

// An order is all that a run needs to know.
type order struct {
	entry      *mcpconfig.Server
	generation uint64
	server     *Server
	scrub      func(text string) string // takes what must not be shown out of a text
}

// A progress is what a run reports to its owner: perhaps warnings, then ready,
// and always ended, last and once.
type progress struct {
	generation uint64
	link       *link         // it is ready
	hello      *source.Hello // with link
	ended      *outcome
	warning    string
}

// An outcome is how a run ended.
type outcome struct {
	failure   *source.Failure // nil when it ended because it was told to
	permanent bool            // trying again can't mend the cause
	forgotten bool            // the server is there, and lost the session
}

// A runner makes the runs of one server.
type runner struct{ options *Options }

// launch is the launcher of real runs.
func (r *runner) launch(ctx Context, o order, report func(progress)) {
	say := func(p progress) {
		p.generation = o.generation
		report(p)
	}
	out := r.run(ctx, o, say)
	if ctx.Err() != nil {
		out = outcome{} // whatever went wrong while it was being stopped is no failure
	}
	say(progress{ended: &out})
}

// resolvable reports whether an entry's references can be resolved now.
func (r *runner) resolvable(entry *mcpconfig.Server) bool {
	return newTarget(entry, r.options).resolvable()
}

// run makes the run: connects, is there, takes its leave.
func (r *runner) run(ctx Context, o order, say func(progress)) outcome {
	to, failure := newTarget(o.entry, r.options).resolve(ctx)
	if failure != nil {
		return outcome{failure: failure, permanent: true}
	}
	if to.exposed() {
		say(progress{warning: "its headers travel unencrypted, since its url is http; use https"})
	}
	l, hello, m := r.connect(ctx, o, say)
	if m != nil {
		return outcome{failure: m.failure, permanent: m.lasting}
	}
	say(progress{link: l, hello: hello})
	select {
	case <-ctx.Done():
		l.close(stoppedFailure(o.entry.Name))
		return outcome{}
	case <-l.life.Done():
	}
	m = l.asMishap()
	l.close(m.failure)
	return outcome{failure: m.failure, permanent: m.lasting, forgotten: m.forgotten}
}

// connect makes the handshake within the entry's timeout. An entry that doesn't
// say which transport it has is tried with streamable HTTP first; a server that
// refuses that as one of HTTP+SSE would is tried with HTTP+SSE (MCP
// specification, "Transports", backwards compatibility).
func (r *runner) connect(ctx Context, o order, say func(progress)) (*link, *source.Hello, *mishap) {
	ctx, cancel := context.WithTimeout(ctx, o.entry.Timeout)
	defer cancel()
	c := &caller{
		target: newTarget(o.entry, r.options), limits: r.options.limits,
		client: newClient(r.options, o.entry.AllowPrivateAddresses),
	}
	streams := func(l *link) wire { return &streamable{caller: c, inlet: l} }
	older := func(l *link) wire { return &legacy{caller: c, inlet: l} }
	o.scrub = c.target.scrub
	if o.entry.Transport == mcpconfig.SSE {
		return r.greet(ctx, o, older)
	}
	l, hello, m := r.greet(ctx, o, streams)
	if m == nil || !isOlder(m.status) || o.entry.Position("type") != o.entry.Origin {
		return l, hello, m
	}
	l, hello, worse := r.greet(ctx, o, older)
	if worse != nil {
		return nil, nil, m // what it said to the transport of today
	}
	say(progress{warning: "it speaks only the older HTTP+SSE transport; " +
		"type: sse in its entry saves a try at each start"})
	return l, hello, nil
}

// isOlder reports whether a server that doesn't know streamable HTTP answers
// so to its initialize.
func isOlder(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// greet makes a link over one wire, and the handshake.
func (r *runner) greet(ctx Context, o order, over func(*link) wire) (*link, *source.Hello, *mishap) {
	l := newLink(o.server)
	l.scrub = o.scrub
	l.wire = over(l)
	hello, m := r.handshake(ctx, l, o)
	if m == nil {
		return l, hello, nil
	}
	told := *m // others may be reading the mishap itself
	told.failure = r.inTime(ctx, o, m.failure)
	l.close(told.failure)
	return nil, nil, &told
}

// inTime tells a start that took too long from one that was stopped.
func (r *runner) inTime(ctx Context, o order, f *source.Failure) *source.Failure {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) && f.Code != source.CallTimeout {
		return f
	}
	return &source.Failure{
		Code: source.CallTimeout, Server: o.entry.Name, Cause: f,
		Message: fmt.Sprintf("the server did not answer initialize within %s", o.entry.Timeout),
		Fix:     "raise timeoutSecs if it needs longer to start",
	}
}

// handshake opens the wire and makes the handshake of the protocol.
func (r *runner) handshake(ctx Context, l *link, o order) (*source.Hello, *mishap) {
	stop := context.AfterFunc(ctx, func() { // a wire that is being opened is given up with ctx
		if ctx.Err() != nil {
			l.over(&mishap{failure: source.Cancelled(ctx, o.entry.Name)})
		}
	})
	defer stop()
	if m := l.wire.open(ctx); m != nil {
		return nil, m
	}
	result, m := l.initialize(ctx, initializeParams(o.entry, r.options.Capabilities), from(o.entry.Timeout))
	if m != nil {
		return nil, m
	}
	hello, failure := readHello(o.entry.Name, result)
	if failure != nil {
		return nil, &mishap{failure: failure, lasting: true}
	}
	hello.Generation = o.generation
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
