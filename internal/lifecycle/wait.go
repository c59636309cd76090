// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/garraia/garra/source"
)

// Call implements source.Source. The time that it waits for the server counts.
// A request that certainly had no effect is made again over the next link.
func (s *Server) Call(ctx Context, c *source.Call) (Raw, error) {
	result, err := s.call(ctx, c)
	if err == nil {
		s.interest.note(c)
	}
	return result, err
}

func (s *Server) call(ctx Context, c *source.Call) (Raw, error) {
	now := s.current.Load()
	timed := *c
	if timed.Timeout == 0 {
		timed.Timeout = now.entry.CallTimeout
	}
	if timed.Began.IsZero() {
		timed.Began = time.Now()
	}
	if now.link == nil {
		return s.callLater(ctx, &timed, nil, nil)
	}
	result, err := now.link.Call(ctx, &timed)
	if lost, ok := errors.AsType[*Undelivered](err); ok {
		return s.callLater(ctx, &timed, now.link, lost)
	}
	return result, err
}

// callLater waits for a server that isn't ready, over another link than dead,
// which lost the call, and calls it then. At first both may be nil.
func (s *Server) callLater(ctx Context, c *source.Call, dead *usage, lost *Undelivered) (Raw, error) {
	waiting, cancel := context.WithDeadline(ctx, c.Began.Add(c.Timeout))
	defer cancel()
	for {
		now, err := s.await(waiting, dead)
		if err != nil {
			return nil, err
		}
		result, err := now.link.Call(ctx, c)
		again, ok := errors.AsType[*Undelivered](err)
		switch {
		case !ok:
			return result, err
		case again.Forgotten && lost != nil && lost.Forgotten:
			return nil, again.Cause
		}
		dead, lost = now.link, again
	}
}

// await waits until the server is ready, over another link than dead (which may
// be nil), or until that can't be expected any more.
func (s *Server) await(ctx Context, dead *usage) (*snapshot, error) {
	tried := false // since the caller came, or it saw a try end
	for {
		now := s.current.Load()
		switch {
		case s.life.Err() != nil:
			return nil, context.Cause(s.life)
		case now.link != nil && now.link != dead:
			return now, nil
		case now.status.Asleep && now.status.State == source.Stopped:
			if err := s.ask(ctx, (*owner).rouse); err != nil {
				return nil, err
			}
			continue
		case now.status.State == source.Backoff && isLate(ctx, now):
			return nil, s.tooEarly(now)
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

// isLate reports whether the server is tried again only when the time of who
// waits is over. An edit or a restart could change that, but isn't waited for.
func isLate(ctx Context, now *snapshot) bool {
	deadline, limited := ctx.Deadline()
	return limited && now.status.NextTry.After(deadline)
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
		if now.status.Asleep {
			return nil
		}
		f := StoppedFailure(s.name)
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
