// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// A runner makes the runs of one server.
type runner struct {
	server  *Server // for what outlives a run: stderr's ring, oddities
	dir     string  // the configuration folder: the base of relative paths
	host    envbuild.Host
	secrets envbuild.Secrets
	forced  *isolation
	warden  *warden
	spawn   chan struct{} // bounds how many are spawned at the same time
	hooks   *source.Hooks
	limits  *limits
	redact  *redact.Set
	blocked func(key string) bool // may be nil
	once    bool                  // for one command, which says by itself where to look
}

var _ lifecycle.Runner = (*runner)(nil)

// Run implements lifecycle.Runner: it builds, spawns, speaks.
func (r *runner) Run(ctx Context, run *lifecycle.Run) (out lifecycle.Outcome) {
	spec, env, err := r.build(ctx, run.Entry)
	if err != nil {
		return lifecycle.Outcome{Failure: lifecycle.EntryFailure(run.Entry.Name, err), Permanent: true}
	}
	cell, err := r.warden.cellOf(run.Entry, spec)
	if err != nil {
		return lifecycle.Outcome{Failure: confineFailure(run.Entry.Name, err), Permanent: true}
	}
	release := r.redact.Hold(r.secretsOf(spec))
	defer func() { // what is told of the run's end is told without its secrets
		out.Failure = lifecycle.Redacted(out.Failure, r.redact.String)
		release()
	}()
	if err := cell.furnish(); err != nil {
		return startOutcome(run.Entry, err)
	}
	for _, w := range slices.Concat(spec.Warnings, withheld(run.Entry.Name, env), cell.warnings) {
		run.Warn(w)
	}
	run.Show(func(s *source.Status) {
		s.Env, s.Secrets = env, append([]string{}, spec.Keys...)
		s.Command = r.commandOf(spec, cell)
	})
	cell.refused = func(what sandbox.Refusal) {
		run.Warn(r.redact.String(fmt.Sprintf("server %q: %s; %s", run.Entry.Name, what, cell.remedy(&what))))
	}
	proc, err := r.start(ctx, spec, limitsOf(run.Entry, r.limits.noCgroup), cell)
	if err != nil {
		return startOutcome(run.Entry, err)
	}
	showLimits(run, proc.Enforcement())
	shown := cell.status(proc.Confinement(), r.redact.String)
	run.Show(func(s *source.Status) { s.Sandbox = shown })
	return r.attendConfined(ctx, run, proc, cell)
}

// attendConfined attends to a process, and tells people what the sandbox denied it.
func (r *runner) attendConfined(ctx Context, run *lifecycle.Run, proc *process, c *cell) lifecycle.Outcome {
	missed := &denials{cell: c, run: run, home: r.warden.home}
	listening, hooks := *r, *r.hooks
	hooks.Stderr = func(server, line string) {
		missed.hear(line)
		if r.hooks.Stderr != nil {
			r.hooks.Stderr(server, line)
		}
	}
	listening.hooks = &hooks
	out := listening.attend(ctx, run, proc)
	missed.explain(out.Failure)
	return out
}

// confineFailure is why a server isn't started.
func confineFailure(server string, err error) *source.Failure {
	f := &source.Failure{Code: source.ServerFailed, Server: server, Cause: err, Message: err.Error()}
	if e, ok := errors.AsType[*confineError](err); ok {
		f.Fix = e.fix
	}
	return f
}

// commandOf is what a person may see of how the server is run. References in the names
// of files have become what they refer to.
func (r *runner) commandOf(spec *envbuild.Spec, c *cell) source.Command {
	shown := func(text string) string {
		clean, _ := r.redact.Text([]byte(text))
		return string(clean)
	}
	of := source.Command{Path: shown(spec.Path), Dir: shown(c.dir)}
	for _, folder := range spec.SearchPath {
		of.SearchPath = append(of.SearchPath, shown(folder))
	}
	return of
}

// secretsOf are the values that nothing of the server's may show.
func (r *runner) secretsOf(spec *envbuild.Spec) []redact.Value {
	values := make([]redact.Value, len(spec.Secrets))
	for i, secret := range spec.Secrets {
		values[i] = redact.Value{Name: secret.Name, Text: secret.Text()}
		if r.blocked != nil && r.blocked(secret.Name) {
			values[i].Policy = redact.Block
		}
	}
	return values
}

// build makes the environment; env tells what a person may know of it.
func (r *runner) build(ctx Context, of *mcpconfig.Server) (*envbuild.Spec, source.Env, error) {
	entry := EntryOf(of, r.dir)
	entry.FileDir, entry.Private = newFileDir(r.host), r.warden.privateOf(of)
	spec, err := envbuild.Build(ctx, entry, r.host, r.secrets)
	if err != nil {
		return nil, source.Env{}, err
	}
	if !r.forced.holds(of) {
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

// Obstacle implements lifecycle.Runner: it is why the environment can't be built, or the
// server not be confined.
func (r *runner) Obstacle(ctx Context, entry *mcpconfig.Server) *source.Failure {
	spec, _, err := r.build(ctx, entry)
	if err != nil {
		return lifecycle.EntryFailure(entry.Name, err)
	}
	if _, err := r.warden.cellOf(entry, spec); err != nil {
		return confineFailure(entry.Name, err)
	}
	return nil
}

// Edited implements lifecycle.Runner: an edit ends a forced isolation.
func (r *runner) Edited(old, next *mcpconfig.Server) (replace bool) {
	if r.forced.holds(next) { // since the edit was made over the API
		return old.NeedsRestart(next)
	}
	lifted := r.forced.holds(old)
	if err := r.forced.lift(old.Name); err != nil {
		r.server.Trouble(fmt.Sprintf("forgetting that %q runs isolated: %v", old.Name, err))
	}
	return lifted && next.InheritEnv || old.NeedsRestart(next)
}

// ByHand implements lifecycle.Runner: the server runs isolated from now on.
func (r *runner) ByHand(entry *mcpconfig.Server) *source.Failure {
	if !entry.InheritEnv {
		return nil
	}
	if err := r.forced.force(entry); err != nil {
		return &source.Failure{
			Code: source.ServerFailed, Server: entry.Name, Cause: err,
			Message: "remembering that it runs isolated: " + err.Error(),
			Fix:     "make the state folder writable",
		}
	}
	return nil
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
func (r *runner) start(ctx Context, spec *envbuild.Spec, limits sandbox.Limits, c *cell) (*process, error) {
	select {
	case r.spawn <- struct{}{}:
		defer func() { <-r.spawn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	of := sandbox.Spec{
		Path: spec.Path, Args: spec.Args, Env: spec.Environ(), Files: filesOf(spec), Limits: limits,
	}
	c.confine(&of)
	return startProcess(of)
}
