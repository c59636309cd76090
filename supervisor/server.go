// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// maxTold is how many of one server's oddities of a kind become events; the
// others are only counted.
const maxTold = 20

// A Server is one supervised stdio server. It implements source.Source,
// source.Controller and source.Logger, and is safe for concurrent use.
type Server struct {
	name    string
	hooks   *source.Hooks
	limits  *limits
	launch  launcher
	mended  func(entry *mcpconfig.Server, isolated bool) bool
	forced  *isolation
	once    bool // a start that fails is not tried again
	ring    *ring
	noise   tally // lines on standard output that were no messages
	trouble tally // what the server didn't take
	mail    chan command
	reports chan progress
	current atomic.Pointer[snapshot]
	life    Context                 // of the owner; ends, with a *source.Failure, when the server is to go
	end     context.CancelCauseFunc // of life

	done chan struct{} // closed when the owner ended
	left bool          // written before done is closed: something of the server still runs
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
	_ source.Logger     = (*Server)(nil)
)

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

// A tally counts what is worth an event as long as it is rare.
type tally struct{ n atomic.Int64 }

// noised counts a line on standard output that was no message, or none that
// garra could use.
func (s *Server) noised(message string) { s.count(&s.noise, source.EventNoise, message) }

// troubled counts a message that the server didn't take, or asked in vain.
func (s *Server) troubled(message string) { s.count(&s.trouble, source.EventWarning, message) }

// count makes an event of the first ones of a tally.
func (s *Server) count(t *tally, kind source.EventKind, message string) {
	n := t.n.Add(1)
	if n > maxTold || s.hooks.Event == nil {
		return
	}
	if n == maxTold {
		message += " (more of these are counted, not told)"
	}
	now := s.current.Load()
	s.hooks.Event(source.Event{
		Time: time.Now(), Server: s.name, Kind: kind, State: now.status.State, PID: now.status.PID,
		Message: message,
	})
}

// Status implements source.Source.
func (s *Server) Status() source.Status {
	status := s.current.Load().status
	status.Noise = int(s.noise.n.Load())
	return status
}

// Logs returns what the server wrote to standard error after line seq (0 for
// all that is kept), and a channel that is closed when there is more.
func (s *Server) Logs(seq uint64) ([]source.Line, <-chan struct{}) { return s.ring.after(seq) }

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
// A request that its server certainly didn't get, since the server was gone
// before it was written, is sent again to the next run.
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
		return s.callLater(ctx, c, nil, b)
	}
	result, err := now.link.call(ctx, c, b)
	if errors.Is(err, errNotDelivered) {
		return s.callLater(ctx, c, now.link, b)
	}
	return result, err
}

// callLater waits for a server that isn't ready, over another link than dead,
// and calls it then.
func (s *Server) callLater(ctx Context, c *source.Call, dead *link, b budget) (Raw, error) {
	waiting, cancel := context.WithDeadline(ctx, b.began.Add(b.timeout))
	defer cancel()
	for {
		now, err := s.await(waiting, dead)
		if err != nil {
			return nil, err
		}
		result, err := now.link.call(ctx, c, b)
		if !errors.Is(err, errNotDelivered) {
			return result, err
		}
		dead = now.link
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
		return s.parkedFailure(now)
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
		return s.parkedFailure(now)
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

// Restart stops the server, starts it and waits until it is ready or the
// attempt failed, which is a *source.Failure. Its environment is isolated from
// then on, until its entry is edited, whatever inherit_env says.
func (s *Server) Restart(ctx Context) error { return s.attempt(ctx, (*owner).restartFor) }

// Start starts a server that doesn't run, with the same consequences as Restart;
// of one that runs it only waits for the outcome.
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

// restartFor is a start by a person, who waits for the outcome.
func (o *owner) restartFor(outcome chan<- error) {
	if f := o.isolate(); f != nil {
		outcome <- f
		return
	}
	o.starters = append(o.starters, outcome)
	o.restart()
}

// Stop stops the server and waits until its whole tree is gone, or fails when
// that can't be had. The server stays stopped until somebody starts it.
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
