// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/envbuild"
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
	Hooks         Hooks
}

// A Supervisor owns the stdio servers of one configuration. It is safe for
// concurrent use.
type Supervisor struct {
	options Options
	hooks   *Hooks
	spawn   chan struct{}
	forced  *isolation

	applying sync.Mutex         // held by Apply and Close
	mu       sync.RWMutex       // guards servers and closed
	servers  map[string]*Server // by name
	closed   bool
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
	s.hooks = &s.options.Hooks
	return s, nil
}

// Apply makes the servers equal to those of the configuration, all at the same
// time, and doesn't wait until they are ready. A server whose entry did not
// change is not touched, one whose change doesn't concern its process keeps it.
func (s *Supervisor) Apply(config *mcpconfig.Config) {
	s.applying.Lock()
	defer s.applying.Unlock()
	wanted := make(map[string]bool, len(config.Servers))
	for _, entry := range config.Servers {
		wanted[entry.Name] = true
		if server := s.Server(entry.Name); server != nil {
			// The owner always takes its mail; an error means that it is gone.
			_ = server.ask(context.Background(), func(o *owner) { o.apply(entry) })
			continue
		}
		s.add(s.newServer(config.Dir, entry))
	}
	for _, name := range s.Names() {
		if !wanted[name] {
			s.remove(name)
		}
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
	s.mu.Lock()
	servers := s.servers
	s.servers, s.closed = nil, true
	s.mu.Unlock()
	for _, server := range servers {
		server.end()
	}
	for name, server := range servers {
		select {
		case <-server.done:
		case <-ctx.Done():
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

func (s *Supervisor) add(server *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		server.end()
		return
	}
	s.servers[server.name] = server
}

// remove forgets a server at once; its process stops in the background.
func (s *Supervisor) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers[name].end()
	delete(s.servers, name)
}

// newServer makes a server and starts its owner, and its first run unless it is
// disabled.
func (s *Supervisor) newServer(dir string, entry *mcpconfig.Server) *Server {
	r := &runner{
		dir: dir, host: s.options.Host, secrets: s.options.Secrets, spawn: s.spawn, hooks: s.hooks,
	}
	server := &Server{
		name: entry.Name, hooks: s.hooks, launch: r.launch, mended: r.buildable,
		forced: s.forced, ring: newRing(),
		mail: make(chan command), reports: make(chan progress), done: make(chan struct{}),
	}
	server.begin(entry)
	return server
}

// begin starts the owner.
func (s *Server) begin(entry *mcpconfig.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	o := &owner{
		server: s, entry: entry, policy: newPolicy(),
		forced: entry.InheritEnv && s.forced.holds(entry.Name, entry.Digest()),
		timer:  time.NewTimer(time.Hour),
	}
	o.timer.Stop()
	o.status.State, o.status.Since = source.Disabled, time.Now()
	if entry.Enabled {
		o.start()
	} else {
		o.publish()
	}
	go o.loop(ctx) // ends when end is called and the run's tree is gone; Close waits for it
}
