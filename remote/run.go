// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A runner makes the runs of one server.
type runner struct {
	options *Options
	server  *Server
	missed  atomic.Pointer[mishap] // for which the last run needed a login; nil when it didn't
}

var _ lifecycle.Runner = (*runner)(nil)

// Run implements lifecycle.Runner: it connects, is there, takes its leave.
func (r *runner) Run(ctx Context, run *lifecycle.Run) (out lifecycle.Outcome) {
	// Nothing of garra's environment reaches the server but what the entry names.
	run.Show(func(s *source.Status) { s.Env.Mode = source.EnvIsolated })
	r.missed.Store(nil)
	veil := newVeil(r.options)
	defer func() { // what is told of the run's end is told without its secrets
		out.Failure = lifecycle.Redacted(out.Failure, r.options.Redact.String)
		veil.lift()
	}()
	to, failure := newTarget(run.Entry, r.options, veil).resolve(ctx)
	if failure != nil {
		return lifecycle.Outcome{Failure: failure, Permanent: true}
	}
	run.Show(func(s *source.Status) { s.Secrets = append([]string{}, to.keys...) })
	if to.exposed() {
		run.Warn("its headers travel unencrypted, since its url is http; use https")
	}
	l, hello, m := r.connect(ctx, run, veil)
	if m != nil {
		r.miss(m)
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
	r.miss(m)
	l.close(m.failure)
	return lifecycle.Outcome{Failure: m.failure, Permanent: m.lasting, Forgotten: m.forgotten}
}

// miss notes that a run ended since nobody was logged in.
func (r *runner) miss(m *mishap) {
	if m.login != nil {
		r.missed.Store(m)
	}
}

// Obstacle implements lifecycle.Runner: it is what can't be resolved, or that
// there is no other token than the one that was refused.
func (r *runner) Obstacle(ctx Context, entry *mcpconfig.Server) *source.Failure {
	to, failure := newTarget(entry, r.options, nil).resolve(ctx)
	if failure != nil {
		return failure
	}
	m := r.missed.Load()
	if m == nil || to.account == nil || to.account.Stored() != *m.login {
		return nil
	}
	return m.failure
}

// Edited implements lifecycle.Runner.
func (r *runner) Edited(old, next *mcpconfig.Server) (replace bool) { return old.NeedsRestart(next) }

// ByHand implements lifecycle.Runner: it is a start as any other.
func (r *runner) ByHand(*mcpconfig.Server) *source.Failure { return nil }

// connect learns what the server offers within the entry's timeout. An entry that
// doesn't say which transport and era it has is tried with streamable HTTP and a
// handshake first; a server that refuses that is asked without a handshake, and
// one that refuses as a server of HTTP+SSE would with that (MCP specification,
// "Transports", backwards compatibility).
func (r *runner) connect(ctx Context, run *lifecycle.Run, veil *veil) (*link, *source.Hello, *mishap) {
	entry := run.Entry
	ctx, cancel := context.WithTimeout(ctx, entry.Timeout)
	defer cancel()
	c := &caller{
		target: newTarget(entry, r.options, veil), limits: r.options.limits,
		client: newClient(r.options, entry.AllowPrivateAddresses),
	}
	streams := func(l *link) wire { return &streamable{caller: c, inlet: l} }
	older := func(l *link) wire { return &legacy{caller: c, inlet: l} }
	switch {
	case entry.Transport == mcpconfig.SSE:
		return r.greet(ctx, c, older, r.handshake)
	case entry.Era == mcpconfig.EraModern:
		return r.greet(ctx, c, streams, r.discover)
	}
	l, hello, m := r.greet(ctx, c, streams, r.handshake)
	if m == nil || !m.refused && !isOlder(m.status) {
		return l, hello, m
	}
	if entry.Era == mcpconfig.EraAuto {
		if l, hello, worse := r.greet(ctx, c, streams, r.discover); worse == nil {
			return l, hello, nil
		}
	}
	if !isOlder(m.status) || entry.Position("type") != entry.Origin {
		return nil, nil, m
	}
	l, hello, worse := r.greet(ctx, c, older, r.handshake)
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

// A meeting is how the two sides get to know each other.
type meeting func(ctx Context, l *link, entry *mcpconfig.Server) (*source.Hello, *mishap)

// greet makes a link over one wire, and has the server introduce itself.
func (r *runner) greet(
	ctx Context, c *caller, over func(*link) wire, meet meeting,
) (*link, *source.Hello, *mishap) {
	entry := c.target.entry
	l := newLink(entry.Name, r.options, r.server.Trouble)
	l.scrub = c.target.scrub
	l.wire = over(l)
	hello, m := meet(ctx, l, entry)
	if m == nil {
		l.answered.Store(false) // that was no answer to a call
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
	result, m := l.introduced(ctx, &source.Call{
		Method: protocol.MethodInitialize, Params: eras.InitializeParams(entry.ForwardRoots),
	}, from(entry.Timeout))
	if m != nil {
		return nil, m
	}
	hello, err := eras.ReadHello(entry.Name, result)
	if err != nil {
		return nil, &mishap{failure: source.AsFailure(err, source.ServerFailed, entry.Name), lasting: true}
	}
	l.wire.greeted(hello.Revision)
	ready := &parcel{message: protocol.NewNotification(protocol.NoteInitialized, nil)}
	if m := l.wire.send(ctx, ready); m != nil && (m.ends || ctx.Err() != nil) {
		return nil, m
	} else if m != nil {
		l.trouble("the server did not take " + protocol.NoteInitialized + ": " + m.failure.Message)
	}
	return hello, nil
}

// discover meets a server of the stateless era.
func (r *runner) discover(ctx Context, l *link, entry *mcpconfig.Server) (*source.Hello, *mishap) {
	return l.discover(ctx, entry.Timeout)
}
