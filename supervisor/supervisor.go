// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/sandbox"
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
	// PrivateDir is the absolute folder in which each server has a home, a cache and
	// temporary files of its own. It is made when it is needed.
	PrivateDir string
	// Own are garra's own folders and files, which no server may touch.
	Own []string
	// Redact gets the secrets that servers are started with, and takes them out of all
	// that comes from any. Nil is one that nobody else has.
	Redact *redact.Set
	// Blocked reports whether what holds a secret is kept back. It may be nil.
	Blocked func(key string) bool
	// Once is for a command that uses its servers and ends: a start that fails is
	// not tried again, whatever the entry says.
	Once bool
	// Shared is what these servers have in common with those of other kinds.
	Shared lifecycle.Shared

	limits    *limits                  // nil for the standard ones
	abilities func() sandbox.Abilities // nil for the machine's
}

// A Supervisor owns the stdio servers of one configuration. It is safe for
// concurrent use.
type Supervisor struct {
	options Options
	spawn   chan struct{}
	forced  *isolation
	warden  *warden
	set     *lifecycle.Set[*Server]
}

// errNoPrivateDir is a mistake of the caller: servers would share what they write.
var errNoPrivateDir = errors.New("supervising servers: there is no absolute folder for what is private to each")

// New returns a Supervisor without servers. It fails when the isolation file is
// there and can't be read.
func New(options Options) (*Supervisor, error) {
	if !filepath.IsAbs(options.PrivateDir) {
		return nil, errNoPrivateDir
	}
	forced, err := openIsolation(options.IsolationFile)
	if err != nil {
		return nil, err
	}
	if options.Redact == nil {
		options.Redact = new(redact.Set)
	}
	if options.limits == nil {
		standard := standardLimits()
		options.limits = &standard
	}
	return &Supervisor{
		options: options,
		spawn:   make(chan struct{}, maxSpawning),
		forced:  forced,
		warden:  newWarden(&options),
		set:     lifecycle.NewSet[*Server](),
	}, nil
}

// Apply makes the servers equal to the entries of the configuration that have a
// command, all at the same time, and doesn't wait until they are ready. A server
// whose entry did not change is not touched, one whose change doesn't concern its
// process keeps it. One that isn't there any more is forgotten at once and stops
// in the background; if its name comes back, its successor waits for that. After
// Close it does nothing.
func (s *Supervisor) Apply(config *mcpconfig.Config) {
	wanted := slices.DeleteFunc(slices.Clone(config.Servers), func(e *mcpconfig.Server) bool {
		return e.Transport != mcpconfig.Stdio
	})
	s.set.Apply(wanted, func(entry *mcpconfig.Server) *Server { return s.newServer(config.Dir, entry, "", nil) })
}

// Rotate tells the servers that secrets have changed, came or went; changed says whether a
// key did so for a server. Those that run with one start again, and those that could not
// be started are looked at. It waits for neither, and returns the names of the first.
func (s *Supervisor) Rotate(changed func(server, key string) bool) []string {
	return s.set.Rotate(changed)
}

// Renew starts those of the servers again that run, and has those looked at that could
// not be started.
func (s *Supervisor) Renew(names []string, why string) { s.set.Renew(names, why) }

// Isolate keeps garra's environment from a server from the Apply on that has this entry,
// until its text is another, whatever it says of that.
func (s *Supervisor) Isolate(entry *mcpconfig.Server) error {
	if !entry.InheritEnv {
		return nil
	}
	return s.forced.force(entry)
}

// Server returns a server by name, nil when there is none.
func (s *Supervisor) Server(name string) *Server { return s.set.Server(name) }

// Names returns the names of all servers, sorted.
func (s *Supervisor) Names() []string { return s.set.Names() }

// Close stops all servers at the same time and returns the names of those of
// which something still runs, or which did not stop before ctx ended.
func (s *Supervisor) Close(ctx Context) (left []string) { return s.set.Close(ctx) }

// newServer makes a server that doesn't run yet: one that clients share, or one of
// that server which a holder has alone, and which writes to the ring of both.
func (s *Supervisor) newServer(dir string, entry *mcpconfig.Server, holder string, of *Server) *Server {
	server := &Server{ring: newRing(), of: of}
	r := &runner{
		server: server, dir: dir, host: s.options.Host, secrets: s.options.Secrets, spawn: s.spawn,
		forced: s.forced, warden: s.warden, hooks: &s.options.Hooks, limits: s.options.limits, once: s.options.Once,
		redact: s.options.Redact, blocked: s.options.Blocked,
	}
	options := lifecycle.Options{
		Hooks: s.options.Hooks, Once: s.options.Once, Recheck: s.options.limits.recheck, Holder: holder,
		Shared: s.options.Shared, KeepsSecrets: true, Redact: s.options.Redact.String,
	}
	if of == nil {
		options.Fork = func(entry *mcpconfig.Server, holder string) *lifecycle.Server {
			return s.newServer(dir, entry, holder, server).Server
		}
	}
	server.Server = lifecycle.New(entry, r, options)
	return server
}
