// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

const (
	maxForks  = 32               // of one server
	evictable = time.Minute      // without a call, after which a fork makes room for another
	forkIdle  = 30 * time.Minute // without a call, after which a fork ends, unless the entry says another time
)

// The forks of a server are servers of the same entry, one for each client that
// holds one (sharing: session). They are safe for concurrent use.
type forks struct {
	server *Server

	mu      sync.Mutex // guards all below
	all     map[string]*fork
	leaving []*Server // that end, or have ended
	closed  bool
}

// A fork is a server that one client holds. It ends when that makes no call for
// long.
type fork struct {
	*Server
	forks  *forks
	holder string

	// guarded by forks.mu
	running int
	used    time.Time
	idle    *time.Timer
}

// Fork implements source.Forker. A server without Options.Fork is its own.
func (s *Server) Fork(holder string) (source.Source, *source.Failure) {
	if s.options.Fork == nil {
		return s, nil
	}
	return s.forks.get(holder)
}

// Held implements source.Forker.
func (s *Server) Held(holder string) source.Source {
	s.forks.mu.Lock()
	defer s.forks.mu.Unlock()
	if f := s.forks.all[holder]; f != nil {
		return f
	}
	return nil
}

// Release implements source.Forker.
func (s *Server) Release(holder string) {
	s.forks.mu.Lock()
	defer s.forks.mu.Unlock()
	if f := s.forks.all[holder]; f != nil {
		s.forks.endLocked(f, "its client has left")
	}
}

// Holders implements source.Forker.
func (s *Server) Holders() []string {
	s.forks.mu.Lock()
	defer s.forks.mu.Unlock()
	return slices.Sorted(maps.Keys(s.forks.all))
}

// withForks returns the server and its forks.
func (s *Server) withForks() []*Server {
	s.forks.mu.Lock()
	defer s.forks.mu.Unlock()
	all := []*Server{s}
	for _, f := range s.forks.all {
		all = append(all, f.Server)
	}
	return all
}

// get returns the holder's fork, which is made when there is none.
func (x *forks) get(holder string) (source.Source, *source.Failure) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f := x.all[holder]; f != nil {
		f.used = time.Now() // what comes next is a call
		if f.running == 0 {
			f.idle.Reset(f.patience())
		}
		return f, nil
	}
	now := x.server.current.Load()
	switch {
	case now.status.State == source.Stopped && !now.status.Asleep, now.status.State == source.Disabled:
		return nil, x.server.hopeless(now)
	case x.closed:
		return nil, source.AsFailure(context.Cause(x.server.life), source.ServerStopped, x.server.name)
	}
	if len(x.all) >= maxForks && !x.makeRoomLocked() {
		return nil, &source.Failure{
			Code: source.ServerBusy, Server: x.server.name,
			Message: "as many clients as may have a process of it already, and each made a call just now",
			Fix:     "try again in a minute, or end other clients",
		}
	}
	f := &fork{
		Server: x.server.options.Fork(now.entry, holder), forks: x, holder: holder, used: time.Now(),
	}
	f.idle = time.AfterFunc(f.patience(), f.expire)
	x.prune()
	f.begin(x.leaving)
	x.all[holder] = f
	return f, nil
}

// makeRoomLocked ends the fork that wasn't used for longest, if that is long.
func (x *forks) makeRoomLocked() bool {
	var oldest *fork
	for _, f := range x.all {
		if f.isIdle() && time.Since(f.used) >= evictable && (oldest == nil || f.used.Before(oldest.used)) {
			oldest = f
		}
	}
	if oldest == nil {
		return false
	}
	x.endLocked(oldest, "another client needs its place")
	return true
}

// endLocked lets a fork go.
func (x *forks) endLocked(f *fork, why string) {
	f.idle.Stop()
	delete(x.all, f.holder)
	f.Server.end(source.Fail(source.ServerStopped, f.name, "the client's own process was ended: %s", why))
	x.leaving = append(x.leaving, f.Server)
}

// prune forgets what has ended.
func (x *forks) prune() {
	x.leaving = slices.DeleteFunc(x.leaving, func(s *Server) bool { return isClosed(s.done) && !s.left })
}

// end lets all forks go, and returns those that may still run.
func (x *forks) end(why string, forGood bool) []*Server {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = x.closed || forGood
	for _, f := range x.all {
		x.endLocked(f, why)
	}
	x.prune()
	return slices.Clone(x.leaving)
}

// apply hands another text of the entry on; they end when it says that clients
// share the server.
func (x *forks) apply(entry *mcpconfig.Server) {
	if entry.Sharing != mcpconfig.SharingSession {
		x.end("clients share the server now", false)
		return
	}
	x.mu.Lock()
	all := slices.Collect(maps.Values(x.all))
	x.mu.Unlock()
	for _, f := range all {
		_ = f.ask(context.Background(), func(o *owner) { o.apply(entry) }) // an error means that it has ended
	}
}

// patience is how long a fork is kept without a call.
func (f *fork) patience() time.Duration {
	if idle := f.current.Load().entry.IdleStop; idle > 0 {
		return idle
	}
	return forkIdle
}

// expire ends a fork that wasn't used, unless a call came meanwhile.
func (f *fork) expire() {
	f.forks.mu.Lock()
	defer f.forks.mu.Unlock()
	if f.isIdle() && f.forks.all[f.holder] == f {
		f.forks.endLocked(f, "it made no call for "+f.patience().String())
	}
}

// isIdle reports whether its client neither waits for anything nor wants to hear of
// something.
func (f *fork) isIdle() bool { return f.running == 0 && f.interest.none() }

// Call implements source.Source.
func (f *fork) Call(ctx Context, c *source.Call) (Raw, error) {
	f.forks.mu.Lock()
	f.running++
	f.idle.Stop()
	f.forks.mu.Unlock()
	defer func() {
		f.forks.mu.Lock()
		defer f.forks.mu.Unlock()
		f.running--
		f.used = time.Now()
		if f.running == 0 {
			f.idle.Reset(f.patience())
		}
	}()
	return f.Server.Call(ctx, c)
}
