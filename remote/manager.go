// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// Options are what a Manager needs besides a configuration.
type Options struct {
	Host    envbuild.Host    // garra's own environment, for references
	Secrets envbuild.Secrets // nil: there is no vault, a reference fails its server
	Hooks   source.Hooks
	// Capabilities is the JSON object that garra declares to every server as
	// those of its client; nil declares none.
	Capabilities Raw
	// Once is for a command that uses its servers and ends: a start that fails is
	// not tried again, whatever the entry says.
	Once bool

	limits   *limits       // nil for the standard ones
	tls      *tls.Config   // nil for the system's roots
	resolver *net.Resolver // nil for the system's
}

// A Manager owns the remote servers of one configuration. It is safe for
// concurrent use.
type Manager struct {
	options Options

	applying sync.Mutex         // held by Apply and Close, before mu
	leaving  []*Server          // guarded by applying: removed, and perhaps not gone yet
	closed   bool               // likewise
	mu       sync.RWMutex       // guards servers
	servers  map[string]*Server // by name
}

// New returns a Manager without servers.
func New(options Options) *Manager {
	if options.limits == nil {
		standard := standardLimits()
		options.limits = &standard
	}
	if options.Capabilities == nil {
		options.Capabilities = Raw("{}")
	}
	return &Manager{options: options, servers: make(map[string]*Server)}
}

// Apply makes the servers equal to the entries of the configuration that have a
// url, all at the same time, and doesn't wait until they are ready. A server
// whose entry did not change is not touched, one whose change doesn't concern
// its session keeps it. One that isn't there any more is forgotten at once and
// its session ends in the background. After Close it does nothing.
func (m *Manager) Apply(config *mcpconfig.Config) {
	m.applying.Lock()
	defer m.applying.Unlock()
	if m.closed {
		return
	}
	wanted := slices.DeleteFunc(slices.Clone(config.Servers), func(e *mcpconfig.Server) bool {
		return e.Transport == mcpconfig.Stdio
	})
	m.removeAllBut(wanted)
	for _, entry := range wanted {
		if server := m.Server(entry.Name); server != nil {
			// The owner always takes its mail: it ends only with Close and removal.
			_ = server.ask(context.Background(), func(o *owner) { o.apply(entry) })
			continue
		}
		server := m.newServer(entry)
		m.mu.Lock()
		m.servers[entry.Name] = server
		m.mu.Unlock()
	}
}

// removeAllBut lets all other servers go.
func (m *Manager) removeAllBut(wanted []*mcpconfig.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaving = slices.DeleteFunc(m.leaving, (*Server).gone)
	for name, server := range m.servers {
		if slices.ContainsFunc(wanted, func(e *mcpconfig.Server) bool { return e.Name == name }) {
			continue
		}
		server.end(source.Fail(source.ServerUnknown, name, "the server was taken out of the configuration"))
		m.leaving = append(m.leaving, server)
		delete(m.servers, name)
	}
}

// Server returns a server by name, nil when there is none.
func (m *Manager) Server(name string) *Server {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.servers[name]
}

// Names returns the names of all servers, sorted.
func (m *Manager) Names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	names := make([]string, 0, len(m.servers))
	for name := range m.servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Close ends all sessions at the same time and returns the names of those
// servers whose session had not ended when ctx did.
func (m *Manager) Close(ctx Context) (left []string) {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.closed = true
	m.mu.Lock()
	for name, server := range m.servers {
		server.end(source.Fail(source.ServerStopped, name, "garra is stopping"))
		m.leaving = append(m.leaving, server)
	}
	m.servers = nil
	m.mu.Unlock()
	for _, server := range m.leaving {
		select {
		case <-server.done:
		case <-ctx.Done():
			if !server.gone() {
				left = append(left, server.name)
			}
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}

// newServer makes a server and starts its owner, and its first run unless it is
// disabled.
func (m *Manager) newServer(entry *mcpconfig.Server) *Server {
	r := &runner{&m.options}
	s := newServer(entry, &m.options)
	s.launch, s.mended = r.launch, r.resolvable
	s.begin(entry)
	return s
}
