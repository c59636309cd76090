// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// An attendance is a run from the start of its process to its end.
type attendance struct {
	*runner
	run     *lifecycle.Run
	proc    *process
	link    *link
	started time.Time
	ring    *ring
	stderr  uint64 // the last line in ring that isn't of this run
	ready   bool
	refused *source.Failure // why it was given up although the process lives
}

// attend speaks to a process from its start until it is gone.
func (r *runner) attend(ctx Context, run *lifecycle.Run, proc *process) lifecycle.Outcome {
	s := r.server
	a := &attendance{
		runner: r, run: run, proc: proc, started: time.Now(), ring: s.ring, stderr: s.ring.last(),
		link: newLink(wiring{
			server: run.Entry.Name, origin: s.Origin(), in: proc.stdin, out: proc.stdout, hooks: r.hooks,
			noise: s.noised, trouble: s.Trouble, limits: r.limits, redact: r.redact,
		}),
	}
	run.Show(func(s *source.Status) { s.PID = proc.PID() })
	s.running.Store(proc)
	defer s.running.CompareAndSwap(proc, nil)
	go a.drain() // ends with the server's standard error, at the latest when end closes it; end waits for it
	if hello := a.greet(ctx); hello != nil {
		a.ready = true
		run.Ready(a.link, hello)
		select {
		case <-ctx.Done():
		case <-proc.Exited():
		case <-a.link.life.Done():
		case a.refused = <-a.keepVigil(hello):
		}
	}
	return a.end(ctx)
}

// drain reads what the server writes to standard error.
func (a *attendance) drain() {
	defer close(a.proc.drained)
	a.ring.drain(a.proc.stderr, a.redact, func(line string) {
		if of := a.server.of; of != nil {
			of.ring.add(line)
		}
		if a.hooks.Stderr != nil {
			a.hooks.Stderr(a.run.Entry.Name, line)
		}
	})
}

// greet makes the handshake within the entry's timeout. It returns nil when that
// failed, and sets refused unless the run has ended anyway.
func (a *attendance) greet(ctx Context) *source.Hello {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.link.life, cancel)
	defer stop()
	go func() { // ends with the process, or with the handshake
		select {
		case <-a.proc.Exited():
			waitFor(a.limits.drain, a.link.read) // its answer may be in the pipe
			cancel()
		case <-ctx.Done():
		}
	}()
	hello, err := a.meet(ctx)
	if err != nil {
		a.refused = a.refusal(err)
		return nil
	}
	a.link.answered.Store(false) // that was no answer to a call
	return hello
}

// patience is the time that a process has to become ready.
func (a *attendance) patience() budget {
	return budget{timeout: a.run.Entry.Timeout, began: a.started}
}

// initialize makes the handshake.
func (a *attendance) initialize(ctx Context) (*source.Hello, error) {
	result, err := a.link.call(ctx, &source.Call{
		Method: protocol.MethodInitialize, Params: eras.InitializeParams(a.run.Entry.ForwardRoots),
	}, a.patience())
	if err != nil {
		return nil, err
	}
	hello, err := eras.ReadHello(a.run.Entry.Name, result)
	if err != nil {
		return nil, err
	}
	a.link.notify(protocol.NoteInitialized, nil)
	return hello, nil
}

// refusal is why a server that still runs did not answer its first request well.
func (a *attendance) refusal(err error) *source.Failure {
	name := a.run.Entry.Name
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return source.Fail(source.ServerFailed, name, "the server refused the handshake: %.500s", e)
	}
	f, ok := errors.AsType[*source.Failure](err)
	switch {
	case !ok || f.Code == source.CallCancelled:
		return nil // the run has ended
	case f.Code == source.CallTimeout:
		return &source.Failure{
			Code: source.CallTimeout, Server: name,
			Message: fmt.Sprintf("the server did not answer initialize within %s", a.run.Entry.Timeout),
			Fix:     "raise timeoutSecs if it needs longer to start",
		}
	}
	return f
}

// end answers the calls in flight, brings the process down and says why the run
// ended.
func (a *attendance) end(ctx Context) lifecycle.Outcome {
	out := lifecycle.Outcome{Began: a.started}
	if ctx.Err() != nil {
		out.Failure = lifecycle.StoppedFailure(a.run.Entry.Name)
	} else {
		out.Failure, out.Permanent = a.explain()
	}
	a.link.close(out.Failure)
	if !a.proc.stop(a.limits) {
		out.Leftover = a.proc.Gone()
		out.Failure = source.Fail(source.ServerFailed, a.run.Entry.Name,
			"processes of it are still running after SIGKILL")
	}
	waitFor(a.limits.drain, a.proc.drained, a.link.read)
	if ctx.Err() == nil && a.proc.Over() && out.Failure.Reason == "" { // it was not known yet
		out.Failure, out.Permanent = a.explain()
	}
	a.proc.close()
	<-a.proc.drained
	<-a.link.read
	out.Ending = a.ending()
	a.note(ctx.Err() != nil)
	return out
}

// explain says why a run ended that nobody stopped, and whether another would end so too.
func (a *attendance) explain() (f *source.Failure, permanent bool) {
	f = &source.Failure{
		Code: source.ServerCrashed, Server: a.run.Entry.Name,
		Fix: "see `garra mcp logs " + a.run.Entry.Name + "`",
	}
	if a.once { // and no gateway that keeps logs
		f.Fix = "see what `garra mcp inspect " + a.run.Entry.Name + "` shows of it"
	}
	ended := a.cause()
	switch {
	case a.ranOut():
		a.explainMemory(f, ended)
	case a.refused != nil:
		f.Code, f.Message, f.Reason = a.refused.Code, a.refused.Message, a.refused.Reason
		if a.refused.Fix != "" {
			f.Fix = a.refused.Fix
		}
	case a.ready:
		f.Message = fmt.Sprintf("the server %s after %s", ended, age(a.started))
	default:
		f.Message = fmt.Sprintf("the server %s before it answered initialize, after %s", ended, age(a.started))
	}
	a.quoteLastWords(f)
	if v := a.inVain(); v != nil && f.Reason == "" {
		explainVain(f, v)
		permanent = true
	}
	return f, permanent
}

// quoteLastWords completes a failure by what the server wrote last.
func (a *attendance) quoteLastWords(f *source.Failure) {
	tail, stray := strings.Join(a.ring.tail(a.stderr), "\n"), a.link.stray.Load()
	switch {
	case tail != "":
		f.Message += "; its last words on stderr: " + tail
	case stray != nil:
		f.Message += fmt.Sprintf("; it wrote nothing to stderr, and to stdout %.200q, which is no MCP message", *stray)
	default:
		f.Message += "; it wrote nothing to stderr"
	}
	if tail == "" && f.Reason == "" && (a.refused == nil || a.refused.Fix == "") { // the log would be empty
		f.Fix = "run its command in a terminal to see what it does"
	}
}

// cause waits until the reason of an end is known: the exit may follow the end
// of output, and what was written before the exit may not have been read yet.
func (a *attendance) cause() string {
	gone := waitFor(a.limits.exit, a.proc.Exited())
	if limited := a.run.Entry.MemoryLimitMB > 0; !gone && limited { // the end of a large one takes longer
		gone = waitFor(a.limits.large, a.proc.Exited())
	}
	if gone {
		waitFor(a.limits.drain, a.proc.drained, a.link.read)
		return "ended (" + a.proc.Exit().String() + ")"
	}
	switch err := context.Cause(a.link.life); {
	case errors.Is(err, errInputClosed):
		return "closed its standard input"
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		return "closed its standard output"
	default:
		return "broke its standard output: " + err.Error()
	}
}

// note tells in the log that the run is over.
func (a *attendance) note(wanted bool) {
	text := fmt.Sprintf("the server ended (%s) after %s", a.proc.Exit(), age(a.started))
	if wanted {
		text = fmt.Sprintf("the server was stopped (%s) after %s", a.proc.Exit(), age(a.started))
	}
	a.ring.note(text)
	if of := a.server.of; of != nil {
		of.ring.note(text)
	}
}

// ending is how the process ended.
func (a *attendance) ending() source.Ending {
	exit := a.proc.Exit()
	e := source.Ending{Stderr: a.ring.tail(a.stderr)}
	switch {
	case exit.Lost:
	case exit.Signal != 0:
		e.Signal = exit.Signal.String()
	default:
		e.ExitCode = &exit.Code
	}
	peak := exit.Peak
	if peak == 0 { // without a limit nobody looked: then it is that of the largest process
		peak = exit.MaxRSS
	}
	if peak > 0 {
		used := megabytes(peak)
		e.PeakMB = &used
	}
	return e
}

// age is how long ago t was, for people.
func age(t time.Time) time.Duration {
	d := time.Since(t)
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
