// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// recheck is the time between looks whether what made a server fail is gone.
const recheck = 10 * time.Second

// Options are what all servers of a set have in common.
type Options struct {
	Hooks source.Hooks
	// Once is for a command that uses its servers and ends: a start that fails is
	// not tried again, whatever the entry says.
	Once bool
	// Fork makes a server of an entry for one of its clients, which holds it alone;
	// nil where all share one.
	Fork func(entry *mcpconfig.Server, holder string) *Server
	// Holder is whose server it is; empty when clients share it.
	Holder string
	// Redact takes secrets out of what people are told; nil for none.
	Redact func(text string) string
	// KeepsSecrets: a run goes on with the values that secrets had when it began.
	KeepsSecrets bool
	Shared
	// Recheck is the time between looks whether what made a server fail is gone;
	// 0 is ten seconds.
	Recheck time.Duration
}

// Shared is what all servers of one garra share, of whatever kind they are.
type Shared struct {
	// Drain is how long a run that is told to end goes on for the calls in flight.
	Drain time.Duration
	// History remembers how runs ended; nil remembers nothing.
	History *history.History
	// Rate bounds restarts by policy over all servers; nil doesn't.
	Rate *backoff.Rate
}

// A Server has the life of one entry. It implements source.Source and
// source.Controller, and is safe for concurrent use. It is started by the Set
// that it is put into.
type Server struct {
	name      string
	entry     *mcpconfig.Server // at first; the one in force is in current
	options   Options
	runner    Runner
	before    []<-chan struct{} // servers that had the name, of which nothing may run beside a run
	forks     *forks
	interest  interest
	trouble   Tally             // messages that the server didn't take
	forgotten Tally             // ends that could not be written down
	mail      chan func(*owner) // commands
	reports   chan func(*owner) // of runs
	current   atomic.Pointer[snapshot]
	life      Context                 // of the owner; ends, with a *source.Failure, when the server is to go
	end       context.CancelCauseFunc // of life

	done chan struct{} // closed when the owner ended
	left bool          // written before done is closed: something of the server still runs
}

// A snapshot is what the owner published last. It never changes.
type snapshot struct {
	status  source.Status
	entry   *mcpconfig.Server
	link    *usage        // nil unless ready
	changed chan struct{} // closed when there is a newer one
}

var (
	_ source.Source     = (*Server)(nil)
	_ source.Controller = (*Server)(nil)
	_ source.Forker     = (*Server)(nil)
	_ source.Historian  = (*Server)(nil)
)

// New returns a server whose runs the runner makes.
func New(entry *mcpconfig.Server, runner Runner, options Options) *Server {
	if options.Recheck == 0 {
		options.Recheck = recheck
	}
	if options.Redact == nil {
		options.Redact = func(text string) string { return text }
	}
	s := &Server{
		name: entry.Name, entry: entry, runner: runner, options: options,
		mail: make(chan func(*owner)), reports: make(chan func(*owner)), done: make(chan struct{}),
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.forks = &forks{server: s, all: make(map[string]*fork)}
	s.publish(&snapshot{status: source.Status{State: rest(entry)}, entry: entry, changed: make(chan struct{})})
	return s
}

// base implements Member, also for what embeds a Server.
func (s *Server) base() *Server { return s }

func (s *Server) publish(next *snapshot) {
	if last := s.current.Swap(next); last != nil {
		close(last.changed)
	}
}

// ended waits until nothing of the server runs any more, and reports whether
// that was so before ctx ended.
func (s *Server) ended(ctx Context) bool {
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	return isClosed(s.done) && !s.left
}

// isClosed reports whether a channel, on which nothing is sent, is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// goes lets the server go, with all forks, and returns what may still run.
func (s *Server) goes(why *source.Failure) []*Server {
	s.end(why)
	return append(s.forks.end(why.Message, true), s)
}

// Origin is where its news come from.
func (s *Server) Origin() source.Origin {
	return source.Origin{Server: s.name, Holder: s.options.Holder}
}

// Status implements source.Source.
func (s *Server) Status() source.Status { return s.current.Load().status }

// Link returns the link of the moment, nil unless the server is ready.
func (s *Server) Link() Link {
	if used := s.current.Load().link; used != nil {
		return used.Link
	}
	return nil
}

// Hello implements source.Source.
func (s *Server) Hello(ctx Context) (*source.Hello, error) {
	now, err := s.await(ctx, nil)
	if err != nil {
		return nil, err
	}
	return now.status.Hello, nil
}

// Notify implements source.Source.
func (s *Server) Notify(method string, params Raw) {
	if link := s.Link(); link != nil {
		link.Notify(method, params)
	}
}

// Restart stops the server, starts it and waits until it is ready or the
// attempt failed, which is a *source.Failure. What clients hold ends, and is
// started again when they use it.
func (s *Server) Restart(ctx Context) error {
	s.forks.end("the server is restarted", false)
	return s.attempt(ctx, (*owner).restartByHand)
}

// Start starts a server that doesn't run, as Restart does; of one that runs it
// only waits for the outcome.
func (s *Server) Start(ctx Context) error {
	return s.attempt(ctx, func(o *owner, outcome chan<- error) {
		switch o.goal() {
		case source.Ready:
			outcome <- nil
		case source.Starting:
			o.starters = append(o.starters, outcome)
		default:
			o.restartByHand(outcome)
		}
	})
}

// Stop stops the server, with what clients hold, and waits until nothing of it
// runs, or fails when that can't be had. The server stays stopped until somebody
// starts it.
func (s *Server) Stop(ctx Context) error {
	err := s.attempt(ctx, func(o *owner, outcome chan<- error) {
		if !o.entry.Enabled {
			outcome <- disabledFailure(o.entry)
			return
		}
		o.stoppers = append(o.stoppers, outcome)
		o.status.Asleep = false
		o.become(source.Stopped, "somebody stopped it")
	})
	for _, fork := range s.forks.end("the server is stopped", false) {
		if !fork.ended(ctx) && err == nil {
			err = source.Fail(source.ServerFailed, s.name, "processes of its clients are still running")
		}
	}
	return err
}

// ask has the owner do something and waits until it is done.
func (s *Server) ask(ctx Context, do func(*owner)) error {
	done := make(chan struct{})
	select {
	case s.mail <- func(o *owner) { do(o); close(done) }:
		<-done // the owner does what it took
		return nil
	case <-s.done:
		return context.Cause(s.life)
	case <-ctx.Done():
		return source.Cancelled(ctx, s.name)
	}
}

// attempt has the owner do something that takes time, and waits for the
// outcome, which do must see to: it is sent exactly once.
func (s *Server) attempt(ctx Context, do func(o *owner, outcome chan<- error)) error {
	outcome := make(chan error, 1)
	if err := s.ask(ctx, func(o *owner) { do(o, outcome) }); err != nil {
		return err
	}
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		return source.Cancelled(ctx, s.name)
	}
}
