// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"crypto/tls"
	"net"
	"slices"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/oauth"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/source"
)

// Options are what a Manager needs besides a configuration.
type Options struct {
	Host    envbuild.Host    // garra's own environment, for references
	Secrets envbuild.Secrets // nil: there is no vault, a reference fails its server
	Hooks   source.Hooks
	// Redact gets what is secret of what is sent to servers, and takes it out of all
	// that comes from any. Nil is one that nobody else has.
	Redact *redact.Set
	// Blocked reports whether what holds a secret is kept back. It may be nil.
	Blocked func(key string) bool
	// Logins are the tokens of servers that want OAuth; nil: such servers are not
	// spoken to. The caller closes it after the Manager.
	Logins *oauth.Store
	// Once is for a command that uses its servers and ends: a start that fails is
	// not tried again, whatever the entry says.
	Once bool
	// Shared is what these servers have in common with those of other kinds.
	Shared lifecycle.Shared

	limits   *limits       // nil for the standard ones
	tls      *tls.Config   // nil for the system's roots
	resolver *net.Resolver // nil for the system's
}

// A Server is one MCP server over HTTP. It implements source.Source and
// source.Controller, and is safe for concurrent use.
type Server = lifecycle.Server

// A Manager owns the remote servers of one configuration. It is safe for
// concurrent use.
type Manager struct {
	options Options
	set     *lifecycle.Set[*Server]
}

// New returns a Manager without servers.
func New(options Options) *Manager {
	options.limit()
	if options.Redact == nil {
		options.Redact = new(redact.Set)
	}
	return &Manager{options: options, set: lifecycle.NewSet[*Server]()}
}

// Apply makes the servers equal to the entries of the configuration that have a
// url, all at the same time, and doesn't wait until they are ready. A server
// whose entry did not change is not touched, one whose change doesn't concern
// its session keeps it. One that isn't there any more is forgotten at once and
// its session ends in the background; if its name comes back, its successor waits
// for that. After Close it does nothing.
func (m *Manager) Apply(config *mcpconfig.Config) {
	wanted := slices.DeleteFunc(slices.Clone(config.Servers), func(e *mcpconfig.Server) bool {
		return e.Transport == mcpconfig.Stdio
	})
	m.set.Apply(wanted, m.newServer)
}

// Renew starts the sessions of those servers again, and has those looked at that have none.
func (m *Manager) Renew(names []string, why string) { m.set.Renew(names, why) }

// Rotate tells the servers that secrets have changed, came or went: those that
// could not be started are looked at. The others resolve theirs for each request.
func (m *Manager) Rotate(changed func(server, key string) bool) { _ = m.set.Rotate(changed) }

// Server returns a server by name, nil when there is none.
func (m *Manager) Server(name string) *Server { return m.set.Server(name) }

// Names returns the names of all servers, sorted.
func (m *Manager) Names() []string { return m.set.Names() }

// Close ends all sessions at the same time and returns the names of those
// servers whose session had not ended when ctx did.
func (m *Manager) Close(ctx Context) (left []string) { return m.set.Close(ctx) }

// newServer makes a server that has no session yet.
func (m *Manager) newServer(entry *mcpconfig.Server) *Server {
	r := &runner{options: &m.options}
	r.server = lifecycle.New(entry, r, lifecycle.Options{
		Hooks: m.options.Hooks, Once: m.options.Once, Recheck: m.options.limits.recheck,
		Shared: m.options.Shared, Redact: m.options.Redact.String,
	})
	return r.server
}
