// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// A launcher makes one run and returns when that has ended; ending ctx stops
// it. There is one launcher; tests of the owner have another.
type launcher func(ctx Context, order order, report func(progress))

// An order is all that a run needs to know.
type order struct {
	entry      *mcpconfig.Server
	isolated   bool // build the environment from nothing, whatever the entry says
	generation uint64
	server     *Server // for what outlives the run: stderr's ring, oddities
}

// A progress is what a run reports to its owner: first built and spawned, then
// ready, and always ended, last and once.
type progress struct {
	generation uint64
	built      *envbuild.Spec // the environment was built
	env        source.Env     // with built
	pid        int            // the process runs
	link       *link          // it is ready
	hello      *source.Hello  // with link
	ended      *outcome
	warning    string
}

// An outcome is how a run ended.
type outcome struct {
	failure   *source.Failure // nil when it ended because it was told to
	permanent bool            // trying again can't mend the cause
	leftover  <-chan struct{} // nil, unless something still runs: closed when that is gone
}

// A runner makes real runs.
type runner struct {
	dir     string // the configuration folder: the base of relative paths
	host    envbuild.Host
	secrets envbuild.Secrets
	before  []<-chan struct{} // servers that had the name, whose processes must be gone first
	spawn   chan struct{}     // bounds how many are spawned at the same time
	hooks   *source.Hooks
	limits  *limits
	once    bool // for one command, which says by itself where to look
}

// launch is the launcher of real runs.
func (r *runner) launch(ctx Context, o order, report func(progress)) {
	say := func(p progress) {
		p.generation = o.generation
		report(p)
	}
	out := r.run(ctx, o, say)
	if ctx.Err() != nil && out.leftover == nil {
		out = outcome{} // whatever went wrong while it was being stopped is no failure
	}
	say(progress{ended: &out})
}

// run makes the run: builds, spawns, speaks.
func (r *runner) run(ctx Context, o order, say func(progress)) outcome {
	for _, gone := range r.before {
		select {
		case <-gone:
		case <-ctx.Done():
		}
	}
	spec, env, err := r.build(ctx, o)
	if err != nil {
		return outcome{failure: buildFailure(o.entry, err), permanent: true}
	}
	for _, w := range append(spec.Warnings, withheld(o.entry.Name, env)...) {
		say(progress{warning: w})
	}
	say(progress{built: spec, env: env})

	proc, err := r.start(ctx, spec)
	if err != nil {
		return startOutcome(o.entry, err)
	}
	return r.attend(ctx, o, proc, say)
}

// build makes the environment; env tells what a person may know of it.
func (r *runner) build(ctx Context, o order) (*envbuild.Spec, source.Env, error) {
	entry := EntryOf(o.entry, r.dir)
	spec, err := envbuild.Build(ctx, entry, r.host, r.secrets)
	if err != nil {
		return nil, source.Env{}, err
	}
	if !o.isolated || !entry.InheritEnv {
		return spec, envOf(spec), nil
	}
	inherited := envOf(spec)
	entry.InheritEnv = false
	if spec, err = envbuild.Build(ctx, entry, r.host, r.secrets); err != nil {
		return nil, source.Env{}, err
	}
	env := envOf(spec)
	env.Forced, env.Dropped = true, missing(inherited.Names, env.From)
	return spec, env, nil
}

// buildable reports whether a server's environment can be built now.
func (r *runner) buildable(entry *mcpconfig.Server, isolated bool) bool {
	_, _, err := r.build(context.Background(), order{entry: entry, isolated: isolated})
	return err == nil
}

// withheld warns when a server is not given the environment that it asks for.
func withheld(server string, env source.Env) []string {
	if !env.Forced {
		return nil
	}
	return []string{fmt.Sprintf("server %q: it was started by hand, so inherit_env has no effect until its entry is "+
		"edited; %d of garra's variables are kept from it", server, len(env.Dropped))}
}

// start spawns the process, a few at the same time over all servers.
func (r *runner) start(ctx Context, spec *envbuild.Spec) (*process, error) {
	select {
	case r.spawn <- struct{}{}:
		defer func() { <-r.spawn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return startProcess(sandbox.Spec{
		Path: spec.Path, Args: spec.Args, Env: spec.Environ(), Dir: spec.Dir,
	})
}
