// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// The steps of a stop, each with its time.
const (
	eofGrace   = 2 * time.Second        // after standard input was closed
	termGrace  = 3 * time.Second        // after SIGTERM
	killGrace  = 5 * time.Second        // after SIGKILL, for the tree to be gone
	exitGrace  = 500 * time.Millisecond // between the end of output and the exit
	drainGrace = time.Second            // for the last lines of stderr after the exit

	replyTimeout = 30 * time.Second // for a server to take an answer
)

// A launcher starts runs. There is one; tests of the owner have another.
type launcher func(ctx Context, order order, report func(progress))

// An order is all that a run needs to know.
type order struct {
	entry      *mcpconfig.Server
	isolated   bool // build the environment from nothing, whatever the entry says
	generation uint64
	ring       *ring
	noise      func(line string) // a line on standard output that is no message
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
	leftover  bool            // something of its tree may still run
}

// A runner makes real runs.
type runner struct {
	dir     string // the configuration folder: the base of relative paths
	host    envbuild.Host
	secrets envbuild.Secrets
	spawn   chan struct{} // bounds how many are spawned at the same time
	hooks   *Hooks
}

// launch makes one run and returns when its tree is gone. Ending ctx stops it.
func (r *runner) launch(ctx Context, o order, report func(progress)) {
	say := func(p progress) {
		p.generation = o.generation
		report(p)
	}
	out := r.run(ctx, o, say)
	if ctx.Err() != nil && !out.leftover {
		out = outcome{} // whatever went wrong while it was being stopped is no failure
	}
	say(progress{ended: &out})
}

func (r *runner) run(ctx Context, o order, say func(progress)) outcome {
	if o.entry.Transport != mcpconfig.Stdio {
		return outcome{failure: remoteFailure(o.entry), permanent: true}
	}
	spec, env, err := r.build(ctx, o)
	if err != nil {
		return outcome{failure: buildFailure(o.entry, err), permanent: true}
	}
	for _, w := range spec.Warnings {
		say(progress{warning: w})
	}
	say(progress{built: spec, env: env})

	proc, err := r.start(ctx, spec)
	if err != nil {
		return startOutcome(o.entry, err)
	}
	return r.attend(ctx, o, proc, say)
}

// attend speaks to a process from its start until it is gone.
func (r *runner) attend(ctx Context, o order, proc *process, say func(progress)) outcome {
	name, started, firstLine := o.entry.Name, time.Now(), o.ring.last()
	say(progress{pid: proc.PID()})
	go func() { // ends with the server's standard error; close waits for it
		defer close(proc.drained)
		o.ring.drain(proc.stderr, func(line string) {
			if r.hooks.Stderr != nil {
				r.hooks.Stderr(name, line)
			}
		})
	}()
	l := newLink(name, proc.stdin, proc.stdout, r.hooks, o.noise)

	hello, failure := r.greet(ctx, o, l, proc)
	if failure == nil {
		hello.Generation = o.generation
		say(progress{link: l, hello: hello})
		select {
		case <-ctx.Done():
		case <-proc.Exited():
		case <-l.life.Done():
		}
	}
	return r.finish(ctx, o, ending{proc, l, failure, started, firstLine})
}

// An ending is what is known of a run when it comes to its end.
type ending struct {
	proc      *process
	link      *link
	failure   *source.Failure // of the handshake; nil when it was ready
	started   time.Time
	firstLine uint64 // of stderr
}

// finish answers the calls in flight, brings the process down and says why.
func (r *runner) finish(ctx Context, o order, e ending) outcome {
	var out outcome
	if ctx.Err() != nil {
		out.failure = source.Fail(source.ServerStopped, o.entry.Name, "the server was stopped")
	} else {
		out.failure = e.explain(o)
	}
	e.link.close(out.failure)
	out.leftover = !e.proc.stop()
	if out.leftover {
		out.failure = source.Fail(source.ServerFailed, o.entry.Name,
			"processes of it are still running after SIGKILL")
	}
	return out
}

// explain says why a run ended that nobody stopped. It gives the exit a moment
// to follow the end of output, and stderr to be read.
func (e ending) explain(o order) *source.Failure {
	cause := "closed its standard output"
	if err := context.Cause(e.link.life); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
		cause = "broke its standard output: " + err.Error()
	}
	select {
	case <-e.proc.Exited():
		cause = "ended (" + e.proc.Exit().String() + ")"
		waitFor(e.proc.drained, drainGrace)
	case <-time.After(exitGrace):
	}
	f := &source.Failure{Code: source.ServerCrashed, Server: o.entry.Name}
	switch {
	case e.failure == nil:
		f.Message = fmt.Sprintf("the server %s after %s", cause, age(e.started))
	case e.failure.Code == source.CallTimeout || e.failure.Code == source.ServerFailed:
		*f = *e.failure
	default:
		f.Message = fmt.Sprintf("the server %s before it answered initialize, after %s", cause, age(e.started))
	}
	if tail := o.ring.tail(e.firstLine); tail != "" {
		f.Message += "; its last words on stderr: " + tail
	} else {
		f.Message += "; it wrote nothing to stderr"
	}
	if f.Fix == "" {
		f.Fix = "see `garra mcp logs " + o.entry.Name + "`"
	}
	return f
}

// age is how long ago t was, for people.
func age(t time.Time) time.Duration {
	d := time.Since(t)
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// build makes the environment; env tells what a person may know of it.
func (r *runner) build(ctx Context, o order) (*envbuild.Spec, source.Env, error) {
	entry := entryOf(o.entry, r.dir)
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

// start spawns the process, a few at the same time over all servers.
func (r *runner) start(ctx Context, spec *envbuild.Spec) (*process, error) {
	select {
	case r.spawn <- struct{}{}:
		defer func() { <-r.spawn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return startProcess(sandbox.Spec{
		Path: spec.Path, Args: spec.Args, Env: spec.Environ(), Dir: spec.Dir,
	})
}

// greet makes the handshake within the entry's timeout.
func (r *runner) greet(ctx Context, o order, l *link, proc *process) (*source.Hello, *source.Failure) {
	limit := o.entry.Timeout
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.life, func() { cancel(io.EOF) })
	defer stop()
	go func() { // ends with the process, or with the handshake
		select {
		case <-proc.Exited():
			cancel(io.EOF)
		case <-ctx.Done():
		}
	}()
	result, err := l.call(ctx, &source.Call{
		Method: protocol.MethodInitialize, Params: initializeParams(o.entry),
	}, limit)
	if err == nil {
		hello, err := readHello(o.entry.Name, result)
		if err == nil {
			l.notify(protocol.NoteInitialized, nil)
		}
		return hello, err
	}
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return nil, source.Fail(source.ServerFailed, o.entry.Name, "the server refused initialize: %s", e)
	}
	f := source.AsFailure(err, source.ServerCrashed, o.entry.Name)
	if f.Code == source.CallTimeout {
		f = &source.Failure{
			Code: source.CallTimeout, Server: o.entry.Name,
			Message: fmt.Sprintf("the server did not answer initialize within %s", limit),
			Fix:     "raise timeoutSecs if it needs longer to start",
		}
	}
	return nil, f
}
