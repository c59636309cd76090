// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// Short names for what every test says.
type (
	fields = sourcetest.Fields
	args   = sourcetest.Args
	client = sourcetest.Client
)

var (
	eventually = sourcetest.Eventually
	tool       = sourcetest.Tool
	within     = sourcetest.Within
	from       = sourcetest.From
	textOf     = sourcetest.Text
	failed     = sourcetest.Failed
	contains   = sourcetest.Contains
)

const patience = sourcetest.Patience

// misbehaving is an entry whose server misbehaves by flags. It may write where they say.
func misbehaving(flags ...string) fields {
	path, args := misbehave.Command(flags...)
	f := fields{"command": path, "args": args, "restartDelaySecs": 0.1}
	files := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return !filepath.IsAbs(f) })
	if len(files) > 0 {
		return f.Writing(files...)
	}
	return f
}

// entryNamed is an entry that stands in no file.
func entryNamed(name string) *mcpconfig.Server {
	entry := mcpconfig.NewServer(name, mcpconfig.Position{File: "mcp.json", Line: 1}, mcpconfig.Settings{})
	entry.Transport = mcpconfig.Stdio
	return entry
}

// A rig is a supervisor of real processes, and a record of what it told.
type rig struct {
	*Supervisor
	sourcetest.Record
	t   *testing.T
	dir string
}

// quick are limits for tests that wait for every step.
func quick() limits {
	l := standardLimits()
	l.eof, l.term, l.recheck = 300*time.Millisecond, 300*time.Millisecond, 50*time.Millisecond
	l.note = 100 * time.Millisecond
	return l
}

// withHistory remembers stops.
func withHistory(o *Options) { o.Shared.History = history.New() }

// newRig makes a supervisor without servers, which is closed when the test ends.
func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	limits := quick()
	options := Options{
		Host:       envbuild.Host{Env: []string{"PATH=/usr/bin:/bin"}, Home: r.dir},
		Hooks:      r.Hooks(),
		PrivateDir: t.TempDir(),
		limits:     &limits,
	}
	for _, c := range change {
		c(&options)
	}
	var err error
	if r.Supervisor, err = New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// close closes the supervisor and looks at what it told.
func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if left := r.Close(ctx); len(left) > 0 {
		r.t.Errorf("did not stop: %v", left)
	}
	if bug := r.Saw("a bug in garra"); bug != "" {
		r.t.Error(bug)
	}
}

// apply makes these the servers.
func (r *rig) apply(servers map[string]fields) {
	r.t.Helper()
	r.Apply(sourcetest.Load(r.t, r.dir, servers))
}

// only makes this the only server, under the name s, and returns it once it is
// ready.
func (r *rig) only(f fields) *Server {
	r.t.Helper()
	r.apply(map[string]fields{"s": f})
	r.ready("s")
	return r.Server("s")
}

// ready waits until servers are ready.
func (r *rig) ready(names ...string) {
	r.t.Helper()
	for _, name := range names {
		r.state(name, source.Ready)
	}
}

// state waits until a server is in a state.
func (r *rig) state(name string, want source.State) source.Status {
	r.t.Helper()
	return sourcetest.State(r.t, r.Server(name), want)
}

// use calls a tool and returns its text.
func use(t *testing.T, s *Server, name string, arguments args) string {
	t.Helper()
	return sourcetest.Use(t, s, name, arguments)
}

// pidOf asks a server for its process id, and returns what that is here.
func pidOf(t *testing.T, s *Server) int {
	t.Helper()
	pid, err := strconv.Atoi(use(t, s, "pid", nil))
	if err != nil {
		t.Fatal(err)
	}
	return sourcetest.Outside(t, s.Status().PID, pid)
}

// linkOf is the link of a server that is ready.
func linkOf(s *Server) *link { return s.Link().(*link) }
