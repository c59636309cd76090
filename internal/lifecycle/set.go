// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A Member is a server of a Set: a *Server, or what embeds one.
type Member interface{ base() *Server }

// A Set owns the servers of one kind in a configuration. It is safe for
// concurrent use.
type Set[M Member] struct {
	applying sync.Mutex   // held by Apply and Close, before mu
	leaving  []*Server    // guarded by applying: removed, and perhaps not gone yet
	closed   bool         // likewise
	mu       sync.RWMutex // guards members
	members  map[string]M // by name
}

// NewSet returns a Set without servers.
func NewSet[M Member]() *Set[M] { return &Set[M]{members: make(map[string]M)} }

// Apply makes the servers equal to the entries, all at the same time, and doesn't
// wait until they are ready; create makes those that are new. A server whose
// entry did not change is not touched, one whose change doesn't concern its run
// keeps that. One that isn't there any more is forgotten at once and stops in the
// background; if its name comes back, its successor waits for that. After Close it
// does nothing.
func (s *Set[M]) Apply(entries []*mcpconfig.Server, create func(*mcpconfig.Server) M) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.closed {
		return
	}
	s.removeAllBut(entries)
	for _, entry := range entries {
		s.mu.RLock()
		member, known := s.members[entry.Name]
		s.mu.RUnlock()
		if known {
			// The owner always takes its mail: it ends only with Close and removal.
			_ = member.base().ask(context.Background(), func(o *owner) { o.apply(entry) })
			member.base().forks.apply(entry)
			continue
		}
		member = create(entry)
		member.base().begin(s.leaving)
		s.mu.Lock()
		s.members[entry.Name] = member
		s.mu.Unlock()
	}
}

// Rotate tells the servers that secrets have other values than before, or came, or
// went; changed says whether a key did so for a server. Those that run with one start
// again, and those that could not be started are looked at. It waits for neither, and
// returns the names of the first, sorted.
func (s *Set[M]) Rotate(changed func(server, key string) bool) (restarted []string) {
	s.mu.RLock()
	members := slices.Collect(maps.Values(s.members))
	s.mu.RUnlock()
	for _, member := range members {
		for _, server := range member.base().withForks() {
			// An error means that the server goes.
			_ = server.ask(context.Background(), func(o *owner) {
				if o.rotate(func(key string) bool { return changed(o.entry.Name, key) }) {
					restarted = append(restarted, o.entry.Name)
				}
			})
		}
	}
	slices.Sort(restarted)
	return slices.Compact(restarted)
}

// Renew starts those of the servers again that run, and has those looked at that could
// not be started; why is what they are told. It waits for neither.
func (s *Set[M]) Renew(names []string, why string) {
	for _, name := range names {
		s.mu.RLock()
		member, ok := s.members[name]
		s.mu.RUnlock()
		if !ok {
			continue
		}
		for _, server := range member.base().withForks() {
			// An error means that the server goes.
			_ = server.ask(context.Background(), func(o *owner) { o.renew(why) })
		}
	}
}

// removeAllBut lets all other servers go.
func (s *Set[M]) removeAllBut(entries []*mcpconfig.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.DeleteFunc(s.leaving, func(old *Server) bool { return isClosed(old.done) && !old.left })
	for name, member := range s.members {
		if slices.ContainsFunc(entries, func(e *mcpconfig.Server) bool { return e.Name == name }) {
			continue
		}
		s.leaving = append(s.leaving, member.base().goes(
			source.Fail(source.ServerUnknown, name, "the server was taken out of the configuration"))...)
		delete(s.members, name)
	}
}

// Server returns a server by name, the zero value when there is none.
func (s *Set[M]) Server(name string) M {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.members[name]
}

// Names returns the names of all servers, sorted.
func (s *Set[M]) Names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.members))
	for name := range s.members {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close stops all servers at the same time and returns the names of those of
// which something still runs, or which did not stop before ctx ended.
func (s *Set[M]) Close(ctx Context) (left []string) {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.closed = true
	s.mu.Lock()
	for name, member := range s.members {
		s.leaving = append(s.leaving, member.base().goes(
			source.Fail(source.ServerStopped, name, "garra is stopping"))...)
	}
	s.members = nil
	s.mu.Unlock()
	for _, server := range s.leaving {
		if !server.ended(ctx) {
			left = append(left, server.name)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}
