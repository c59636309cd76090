// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// maxSpawning bounds how many servers are spawned at the same time. Waiting for
// them to become ready is not bounded.
const maxSpawning = 4

// Options are what a Supervisor needs besides a configuration.
type Options struct {
	Host    envbuild.Host    // garra's own environment
	Secrets envbuild.Secrets // nil: there is no vault, a reference fails its server
	// IsolationFile remembers which servers run isolated although their entry
	// says inherit_env; empty remembers it only until the end of this process.
	IsolationFile string
	Hooks         source.Hooks
	// Once is for a command that uses its servers and ends: a start that fails is
	// not tried again, whatever the entry says.
	Once bool

	limits *limits // nil for the standard ones
}

// A Supervisor owns the stdio servers of one configuration. It is safe for
// concurrent use.
type Supervisor struct {
	options Options
	spawn   chan struct{}
	forced  *isolation

	applying sync.Mutex         // held by Apply and Close, before mu
	leaving  []*Server          // guarded by applying: removed, and perhaps not gone yet
	closed   bool               // likewise
	mu       sync.RWMutex       // guards servers
	servers  map[string]*Server // by name
}

// New returns a Supervisor without servers. It fails when the isolation file is
// there and can't be read.
func New(options Options) (*Supervisor, error) {
	forced, err := openIsolation(options.IsolationFile)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		options: options,
		spawn:   make(chan struct{}, maxSpawning),
		forced:  forced,
		servers: make(map[string]*Server),
	}
	if s.options.limits == nil {
		standard := standardLimits()
		s.options.limits = &standard
	}
	return s, nil
}

// Apply makes the servers equal to the entries of the configuration that have a
// command, all at the same time, and doesn't wait until they are ready. A server whose entry did not
// change is not touched, one whose change doesn't concern its process keeps it.
// One that isn't there any more is forgotten at once and stops in the
// background; if its name comes back, its successor waits for that. After Close
// it does nothing.
func (s *Supervisor) Apply(config *mcpconfig.Config) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.closed {
		return
	}
	wanted := slices.DeleteFunc(slices.Clone(config.Servers), func(e *mcpconfig.Server) bool {
		return e.Transport != mcpconfig.Stdio
	})
	s.removeAllBut(wanted)
	for _, entry := range wanted {
		if server := s.Server(entry.Name); server != nil {
			// The owner always takes its mail: it ends only with Close and removal.
			_ = server.ask(context.Background(), func(o *owner) { o.apply(entry) })
			continue
		}
		server := s.newServer(config.Dir, entry)
		s.mu.Lock()
		s.servers[entry.Name] = server
		s.mu.Unlock()
	}
}

// removeAllBut lets all other servers go.
func (s *Supervisor) removeAllBut(wanted []*mcpconfig.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.DeleteFunc(s.leaving, func(old *Server) bool { return waitFor(0, old.done) && !old.left })
	for name, server := range s.servers {
		if slices.ContainsFunc(wanted, func(e *mcpconfig.Server) bool { return e.Name == name }) {
			continue
		}
		server.end(source.Fail(source.ServerUnknown, name, "the server was taken out of the configuration"))
		s.leaving = append(s.leaving, server)
		delete(s.servers, name)
	}
}

// Server returns a server by name, nil when there is none.
func (s *Supervisor) Server(name string) *Server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.servers[name]
}

// Names returns the names of all servers, sorted.
func (s *Supervisor) Names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.servers))
	for name := range s.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close stops all servers at the same time and returns the names of those of
// which something still runs, or which did not stop before ctx ended.
func (s *Supervisor) Close(ctx Context) (left []string) {
	s.applying.Lock()
	defer s.applying.Unlock()
	s.closed = true
	s.mu.Lock()
	for name, server := range s.servers {
		server.end(source.Fail(source.ServerStopped, name, "garra is stopping"))
		s.leaving = append(s.leaving, server)
	}
	s.servers = nil
	s.mu.Unlock()
	for _, server := range s.leaving {
		select {
		case <-server.done:
			if !server.left {
				continue
			}
		case <-ctx.Done():
		}
		left = append(left, server.name)
	}
	slices.Sort(left)
	return slices.Compact(left)
}

// newServer makes a server and starts its owner, and its first run unless it is
// disabled.
func (s *Supervisor) newServer(dir string, entry *mcpconfig.Server) *Server {
	r := &runner{
		dir: dir, host: s.options.Host, secrets: s.options.Secrets, spawn: s.spawn,
		hooks: &s.options.Hooks, limits: s.options.limits, once: s.options.Once,
	}
	for _, old := range s.leaving {
		if old.name == entry.Name {
			r.before = append(r.before, old.done)
		}
	}
	server := &Server{
		name: entry.Name, hooks: r.hooks, limits: r.limits, launch: r.launch, mended: r.buildable,
		forced: s.forced, once: s.options.Once, ring: newRing(),
		mail: make(chan command), reports: make(chan progress), done: make(chan struct{}),
	}
	server.begin(entry)
	return server
}

// begin starts the owner.
func (s *Server) begin(entry *mcpconfig.Server) {
	s.life, s.end = context.WithCancelCause(context.Background())
	o := &owner{
		server: s, entry: entry, policy: backoff.New(),
		forced: entry.InheritEnv && s.forced.holds(entry.Name, entry.Digest()),
		timer:  time.NewTimer(time.Hour),
	}
	o.timer.Stop()
	o.status.State, o.status.Since = o.rest(), time.Now()
	o.publish()
	if entry.Enabled {
		o.start()
	}
	go o.loop() // ends when end is called and the run's tree is gone; Close waits for it
}
