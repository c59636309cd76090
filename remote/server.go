// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// maxTold is how many of one server's oddities become events; the others are
// only counted.
const maxTold = 20

// A Server is one MCP server over HTTP. It implements source.Source and
// source.Controller, and is safe for concurrent use.
type Server struct {
	name    string
	hooks   *source.Hooks
	limits  *limits
	once    bool // a start that fails is not tried again
	launch  launcher
	mended  func(entry *mcpconfig.Server) bool
	trouble atomic.Int64 // what was odd and is told only so often
	mail    chan command
	reports chan progress
	current atomic.Pointer[snapshot]
	life    Context                 // of the owner; ends, with a *source.Failure, when the server is to go
	end     context.CancelCauseFunc // of life
	done    chan struct{}           // closed when the owner ended
}

// A snapshot is what the owner published last. It never changes.
type snapshot struct {
	status  source.Status
	entry   *mcpconfig.Server
	link    *link         // nil unless ready
	changed chan struct{} // closed when there is a newer one
}

var (
	_ source.Source     = (*Server)(nil)
	_ source.Controller = (*Server)(nil)
)

func newServer(entry *mcpconfig.Server, options *Options) *Server {
	return &Server{
		name: entry.Name, hooks: &options.Hooks, limits: options.limits, once: options.Once,
		mail: make(chan command), reports: make(chan progress), done: make(chan struct{}),
	}
}

// begin starts the owner.
func (s *Server) begin(entry *mcpconfig.Server) {
	s.life, s.end = context.WithCancelCause(context.Background())
	o := &owner{server: s, entry: entry, policy: backoff.New(), timer: time.NewTimer(time.Hour)}
	o.timer.Stop()
	o.status.Env.Mode = source.EnvIsolated // nothing of garra's environment but what the entry names
	o.status.State, o.status.Since = o.rest(), time.Now()
	o.publish()
	if entry.Enabled {
		o.start()
	}
	go o.loop() // ends when end is called and the run is over; Close waits for it
}

func (s *Server) publish(next *snapshot) {
	if last := s.current.Swap(next); last != nil {
		close(last.changed)
	}
}

// report hands a run's progress to the owner.
func (s *Server) report(p progress) {
	select {
	case s.reports <- p:
	case <-s.done:
	}
}

// gone reports whether the owner has ended.
func (s *Server) gone() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// troubled counts an oddity of the server, and makes an event of the first ones.
func (s *Server) troubled(message string) {
	n := s.trouble.Add(1)
	if n > maxTold || s.hooks.Event == nil {
		return
	}
	if n == maxTold {
		message += " (more of these are counted, not told)"
	}
	s.hooks.Event(source.Event{
		Time: time.Now(), Server: s.name, Kind: source.EventWarning, State: s.current.Load().status.State,
		Message: message,
	})
}

// Status implements source.Source.
func (s *Server) Status() source.Status { return s.current.Load().status }

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
	if now := s.current.Load(); now.link != nil {
		now.link.notify(method, params)
	}
}

// Call implements source.Source. The time that it waits for the server counts.
// A request that had certainly no effect is made again on the next run.
func (s *Server) Call(ctx Context, c *source.Call) (Raw, error) {
	now := s.current.Load()
	b := budget{timeout: c.Timeout, began: c.Began}
	if b.timeout == 0 {
		b.timeout = now.entry.CallTimeout
	}
	if b.began.IsZero() {
		b.began = time.Now()
	}
	if now.link == nil {
		return s.callLater(ctx, c, b, nil)
	}
	result, err := now.link.call(ctx, c, b)
	if u, again := errors.AsType[*undelivered](err); again {
		u.link = now.link
		return s.callLater(ctx, c, b, u)
	}
	return result, err
}

// callLater waits for a server that isn't ready, over another link than the one
// that lost the call (last may be nil), and calls it then.
func (s *Server) callLater(ctx Context, c *source.Call, b budget, last *undelivered) (Raw, error) {
	waiting, cancel := context.WithDeadline(ctx, b.began.Add(b.timeout))
	defer cancel()
	for {
		var dead *link
		if last != nil {
			dead = last.link
		}
		now, err := s.await(waiting, dead)
		if err != nil {
			return nil, err
		}
		result, err := now.link.call(ctx, c, b)
		next, again := errors.AsType[*undelivered](err)
		if !again {
			return result, err
		}
		if last != nil && last.forgotten && next.forgotten {
			return nil, next.failure // twice is no coincidence
		}
		last = next
		last.link = now.link
	}
}

// await waits until the server is ready, over another link than dead (which may
// be nil), or until that can't be expected any more.
func (s *Server) await(ctx Context, dead *link) (*snapshot, error) {
	tried := false // since the caller came, or it saw a try end
	for {
		now := s.current.Load()
		switch {
		case s.life.Err() != nil:
			return nil, context.Cause(s.life)
		case now.link != nil && now.link != dead:
			return now, nil
		case now.status.State == source.Parked && !tried:
			tried = true
			if err := s.wake(ctx, now); err != nil {
				return nil, err
			}
			continue
		default:
			if f := s.hopeless(now); f != nil {
				return nil, f
			}
		}
		select {
		case <-now.changed:
			tried = true
		case <-s.life.Done():
		case <-ctx.Done():
			return nil, s.gaveUp(ctx, now)
		}
	}
}

// hopeless returns why a server that isn't ready won't become so soon by
// itself, nil when it may.
func (s *Server) hopeless(now *snapshot) *source.Failure {
	switch now.status.State {
	case source.Starting, source.Backoff, source.Stopping, source.Ready:
		return nil
	case source.Parked:
		return parkedFailure(s.name, now)
	case source.Stopped:
		f := stoppedFailure(s.name)
		f.Fix = "start it with `garra mcp start " + s.name + "`"
		return f
	case source.Disabled:
		return disabledFailure(now.entry)
	case source.Failed:
	}
	return failedFailure(s.name, now)
}

// wake has a parked server tried, and fails when that was done just before.
func (s *Server) wake(ctx Context, now *snapshot) error {
	awake := false
	if err := s.ask(ctx, func(o *owner) { awake = o.wake() }); err != nil {
		return err
	}
	if !awake {
		return parkedFailure(s.name, now)
	}
	return nil
}

// ask has the owner do something and waits until it is done.
func (s *Server) ask(ctx Context, do func(*owner)) error {
	done := make(chan struct{})
	select {
	case s.mail <- command{func(o *owner) { do(o); close(done) }}:
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

// Restart ends the session, begins another and waits until the server is ready
// or the attempt failed, which is a *source.Failure.
func (s *Server) Restart(ctx Context) error { return s.attempt(ctx, (*owner).restartFor) }

// Start connects to a server that was stopped or failed; of one that is ready or
// starting it only waits for the outcome.
func (s *Server) Start(ctx Context) error {
	return s.attempt(ctx, func(o *owner, outcome chan<- error) {
		switch o.goal() {
		case source.Ready:
			outcome <- nil
		case source.Starting:
			o.starters = append(o.starters, outcome)
		default:
			o.restartFor(outcome)
		}
	})
}

// Stop ends the session and waits until it is over. The server stays stopped
// until somebody starts it.
func (s *Server) Stop(ctx Context) error {
	return s.attempt(ctx, func(o *owner, outcome chan<- error) {
		if !o.entry.Enabled {
			outcome <- disabledFailure(o.entry)
			return
		}
		o.stoppers = append(o.stoppers, outcome)
		o.become(source.Stopped)
	})
}
