// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// maxNoiseEvents is how many lines of noise of one server become events; the
// others are only counted.
const maxNoiseEvents = 20

// A Server is one supervised stdio server. It implements source.Source and is
// safe for concurrent use.
type Server struct {
	name    string
	hooks   *Hooks
	launch  launcher
	mended  func(entry *mcpconfig.Server, isolated bool) bool
	forced  *isolation
	ring    *ring
	noise   atomic.Int64
	mail    chan command
	reports chan progress
	done    chan struct{} // closed when the owner ended
	end     context.CancelFunc
	current atomic.Pointer[snapshot]
}

// A snapshot is what the owner published last. It never changes.
type snapshot struct {
	status  source.Status
	entry   *mcpconfig.Server
	link    *link         // nil unless ready
	changed chan struct{} // closed when there is a newer one
}

var _ source.Source = (*Server)(nil)

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

// noted counts a line that was no message.
func (s *Server) noted(line string) {
	n := s.noise.Add(1)
	if n > maxNoiseEvents || s.hooks.Event == nil {
		return
	}
	now := s.current.Load()
	s.hooks.Event(Event{
		Time: time.Now(), Server: s.name, Kind: EventNoise, State: now.status.State, PID: now.status.PID,
		Message: fmt.Sprintf("a line on standard output is no MCP message: %.200q", line),
	})
}

// Status implements source.Source.
func (s *Server) Status() source.Status {
	status := s.current.Load().status
	status.Noise = int(s.noise.Load())
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
func (s *Server) Call(ctx Context, c *source.Call) (Raw, error) {
	now := s.current.Load()
	timeout := c.Timeout
	if timeout == 0 {
		timeout = now.entry.CallTimeout
	}
	if now.link != nil {
		result, err := now.link.call(ctx, c, timeout)
		if !errors.Is(err, errClosedBefore) {
			return result, err
		}
	}
	return s.callLater(ctx, c, now, timeout)
}

// callLater waits for a server that isn't ready, and calls it then.
func (s *Server) callLater(ctx Context, c *source.Call, last *snapshot, timeout time.Duration) (Raw, error) {
	began := time.Now()
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if last.link == nil {
		last = nil
	}
	for {
		now, err := s.await(waiting, last)
		if err != nil {
			return nil, err
		}
		result, err := now.link.call(ctx, c, max(timeout-time.Since(began), time.Millisecond))
		if !errors.Is(err, errClosedBefore) {
			return result, err
		}
		last = now
	}
}

// await waits until the server is ready, in a newer snapshot than last (nil for
// any), or until that can't be expected any more.
func (s *Server) await(ctx Context, last *snapshot) (*snapshot, error) {
	woken := false
	for {
		now := s.current.Load()
		switch {
		case now == last:
		case now.link != nil:
			return now, nil
		default:
			wait, err := s.worthWaiting(ctx, now, &woken)
			if err != nil {
				return nil, err
			}
			if !wait {
				continue
			}
		}
		select {
		case <-now.changed:
			woken = true
		case <-s.done:
			return nil, source.Fail(source.ServerStopped, s.name, "garra is stopping")
		case <-ctx.Done():
			return nil, s.gaveUp(ctx, now)
		}
	}
}

// worthWaiting says whether a server that isn't ready may become so by itself.
// A parked one is woken, unless the caller has seen an attempt fail already.
func (s *Server) worthWaiting(ctx Context, now *snapshot, woken *bool) (bool, error) {
	switch now.status.State {
	case source.Starting, source.Backoff, source.Stopping, source.Ready:
		return true, nil
	case source.Parked:
		if !*woken {
			*woken = true
			started := false
			err := s.ask(ctx, func(o *owner) { started = o.wake() })
			return false, orParked(err, started, s.name, now)
		}
		return false, parkedFailure(s.name, now)
	case source.Stopped:
		return false, &source.Failure{
			Code: source.ServerStopped, Server: s.name, Message: "the server was stopped",
			Fix: "start it with `garra mcp start " + s.name + "`",
		}
	case source.Disabled:
		return false, disabledFailure(s.name, now.entry)
	case source.Failed:
	}
	return false, failedFailure(s.name, now)
}

// ask has the owner do something and waits until it is done.
func (s *Server) ask(ctx Context, do func(*owner)) error {
	done := make(chan struct{})
	select {
	case s.mail <- command{func(o *owner) { do(o); close(done) }}:
	case <-s.done:
		return source.Fail(source.ServerStopped, s.name, "garra is stopping")
	case <-ctx.Done():
		return cancelled(ctx, s.name)
	}
	select {
	case <-done:
		return nil
	case <-s.done:
		return source.Fail(source.ServerStopped, s.name, "garra is stopping")
	}
}

// attempt has the owner do something that starts a run, and waits for the
// outcome of that.
func (s *Server) attempt(ctx Context, do func(*owner) error) error {
	outcome := make(chan error, 1)
	refused := error(nil)
	err := s.ask(ctx, func(o *owner) {
		o.waiters = append(o.waiters, outcome)
		if refused = do(o); refused != nil {
			o.waiters = o.waiters[:len(o.waiters)-1]
		}
	})
	if err != nil || refused != nil {
		return errors.Join(err, refused)
	}
	select {
	case err := <-outcome:
		return err
	case <-s.done:
		return source.Fail(source.ServerStopped, s.name, "garra is stopping")
	case <-ctx.Done():
		return cancelled(ctx, s.name)
	}
}

// Restart stops the server, starts it and waits until it is ready or the
// attempt failed, which is a *source.Failure. Its environment is isolated from
// then on, until its entry is edited, whatever inherit_env says.
func (s *Server) Restart(ctx Context) error {
	return s.attempt(ctx, func(o *owner) error { return o.command(o.restart) })
}

// Start starts a server that doesn't run, with the same consequences as Restart;
// of one that runs it only waits for the outcome.
func (s *Server) Start(ctx Context) error {
	return s.attempt(ctx, func(o *owner) error {
		switch o.status.State {
		case source.Ready:
			o.answer(nil)
			return nil
		case source.Starting:
			return nil
		}
		return o.command(o.restart)
	})
}

// Stop stops the server and waits until its whole tree is gone. It stays
// stopped until somebody starts it.
func (s *Server) Stop(ctx Context) error {
	err := s.attempt(ctx, func(o *owner) error {
		if o.status.State == source.Disabled {
			return disabledFailure(s.name, o.entry)
		}
		o.halt(source.Stopped)
		return nil
	})
	if f, ok := errors.AsType[*source.Failure](err); ok && f.Code == source.ServerStopped {
		return nil
	}
	return err
}

// command is a start by a person: isolated from now on.
func (o *owner) command(do func()) error {
	if !o.entry.Enabled {
		return disabledFailure(o.entry.Name, o.entry)
	}
	if o.entry.InheritEnv {
		if err := o.server.forced.force(o.entry.Name, o.entry.Digest()); err != nil {
			return fmt.Errorf("remembering that %q runs isolated: %w", o.entry.Name, err)
		}
		o.forced = true
	}
	do()
	return nil
}
