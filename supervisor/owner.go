// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// An owner is what the one goroutine of a server knows. Nothing here is touched
// by another.
type owner struct {
	server *Server
	entry  *mcpconfig.Server
	status source.Status
	policy policy
	forced bool // isolated, whatever the entry says

	generation uint64
	stopRun    context.CancelFunc // nil when there is no run
	after      func()             // what follows the end of a run that was stopped
	link       *link              // of the run, once ready
	timer      *time.Timer        // the one thing that is due
	due        func()             // what to do when timer fires
	lastWake   time.Time
	waiters    []chan<- error // of commands, for the end of the attempt
}

// A command is what others send to the owner; do runs in its goroutine.
type command struct{ do func(*owner) }

// loop owns the server until its context ends and no run is left.
func (o *owner) loop(ctx Context) {
	defer close(o.server.done)
	stop, mail := ctx.Done(), o.server.mail
	for {
		select {
		case c := <-mail:
			c.do(o)
		case p := <-o.server.reports:
			o.progress(p)
		case <-o.timer.C:
			if due := o.due; due != nil {
				o.due = nil
				due()
			}
		case <-stop:
			stop, mail = nil, nil // who still writes is told by done
			o.halt(source.Stopped)
		}
		if stop == nil && o.stopRun == nil {
			return
		}
	}
}

// in has do done after d, instead of whatever was due before. Do is nil when
// nothing is due any more.
func (o *owner) in(d time.Duration, do func()) {
	o.due = do
	o.timer.Stop()
	o.status.NextTry = time.Time{}
	if do != nil {
		o.timer.Reset(d)
	}
}

// move changes the state, and tells.
func (o *owner) move(to source.State, f *source.Failure) {
	from := o.status.State
	if !possible(from, to) {
		o.warn(fmt.Sprintf("a bug in garra: moved from %s to %s", from, to))
	}
	o.status.State, o.status.Since = to, time.Now()
	if f != nil {
		o.status.LastError = f
	}
	o.publish()
	e := Event{Kind: EventState, From: from, Failure: f}
	if f != nil {
		e.Message = f.Error()
	}
	o.tell(e)
}

// publish makes the status visible to everybody.
func (o *owner) publish() {
	o.server.publish(&snapshot{
		status: o.status, entry: o.entry, link: o.link, changed: make(chan struct{}),
	})
}

func (o *owner) warn(message string) { o.tell(Event{Kind: EventWarning, Message: message}) }

// tell completes an event and hands it on.
func (o *owner) tell(e Event) {
	e.Time, e.Server, e.State, e.PID = time.Now(), o.entry.Name, o.status.State, o.status.PID
	if o.server.hooks.Event != nil {
		o.server.hooks.Event(e)
	}
}

// start begins a run. The caller has made sure that there is none.
func (o *owner) start() {
	o.in(0, nil)
	o.generation++
	ctx, cancel := context.WithCancel(context.Background())
	o.stopRun = cancel
	ord := order{
		entry: o.entry, isolated: o.forced, generation: o.generation,
		ring: o.server.ring, noise: o.server.noted,
	}
	o.move(source.Starting, nil)
	go o.server.launch(ctx, ord, o.server.report) // ends when the run's tree is gone; loop waits for it
}

// progress takes a run's report.
func (o *owner) progress(p progress) {
	if p.generation != o.generation {
		return // of a run that is over already
	}
	switch {
	case p.ended != nil:
		o.ended(p.ended)
	case p.warning != "":
		o.warn(p.warning)
	case p.built != nil:
		o.status.Env = p.env
		o.status.Command = source.Command{Path: p.built.Path, Dir: p.built.Dir, SearchPath: p.built.SearchPath}
		o.publish()
	case p.link != nil:
		o.ready(p)
	case p.pid != 0:
		o.status.PID = p.pid
		o.publish()
	}
}

// ready is the end of a good start.
func (o *owner) ready(p progress) {
	if o.status.State != source.Starting {
		return // it is being stopped
	}
	o.link, o.status.Hello, o.status.Tried = p.link, p.hello, true
	o.policy.ready(time.Now())
	o.in(stableAfter, o.stable)
	o.move(source.Ready, nil)
	o.answer(nil)
}

// stable forgets old failures, once a good answer came after a minute of being
// ready.
func (o *owner) stable() {
	if o.link == nil || !o.link.answered.Load() {
		o.in(stableAfter, o.stable)
		return
	}
	o.policy.answered = true
	o.policy.failures, o.status.LastError = 0, nil
	o.publish()
}

// ended takes the end of a run: one that was stopped goes on to what was
// planned, any other is a failure.
func (o *owner) ended(out *outcome) {
	if o.link != nil {
		o.policy.answered = o.link.answered.Load()
	}
	o.stopRun()
	o.stopRun, o.link = nil, nil
	o.status.PID, o.status.Hello, o.status.Tried = 0, nil, true
	if after := o.after; after != nil {
		o.after = nil
		if out.failure != nil {
			o.warn(out.failure.Error())
		}
		after()
		return
	}
	if out.failure == nil {
		out.failure = source.Fail(source.ServerCrashed, o.entry.Name, "the server ended")
	}
	o.fail(out)
	o.answer(out.failure)
}

// fail decides when a failed server is tried again.
func (o *owner) fail(out *outcome) {
	if out.permanent {
		o.policy.reset()
		o.in(recheckEvery, o.recheck)
		o.move(source.Failed, out.failure)
		return
	}
	wait, parked := o.policy.ended(time.Now(), o.entry.RestartDelay, o.entry.MaxRestarts)
	o.in(wait, o.again)
	state := source.Backoff
	if parked {
		state = source.Parked
		if o.entry.MaxRestarts == 0 {
			o.in(0, nil) // never by itself
		}
	}
	if o.due != nil {
		o.status.NextTry = time.Now().Add(wait)
	}
	o.move(state, out.failure)
}

// again is a restart by policy.
func (o *owner) again() {
	o.status.Restarts++
	o.start()
}

// recheck starts a failed server once its environment can be built.
func (o *owner) recheck() {
	if o.server.mended(o.entry, o.forced) {
		o.start()
		return
	}
	o.in(recheckEvery, o.recheck)
}

// halt stops the server, to be in the given state afterwards.
func (o *owner) halt(state source.State) {
	o.in(0, nil)
	o.stop(func() {
		o.move(state, nil)
		o.answer(source.Fail(source.ServerStopped, o.entry.Name, "the server was stopped"))
	})
}

// restart stops the server if it runs, and starts it.
func (o *owner) restart() {
	o.policy.reset()
	o.status.LastError = nil
	o.stop(o.start)
}

// stop ends the run, if there is one, and then does what follows.
func (o *owner) stop(then func()) {
	if o.stopRun == nil {
		then()
		return
	}
	o.after = then
	o.link, o.status.Hello = nil, nil
	o.move(source.Stopping, nil)
	o.stopRun()
}

// answer tells those who wait how the attempt ended.
func (o *owner) answer(err *source.Failure) {
	for _, w := range o.waiters {
		if err != nil {
			w <- err
		} else {
			w <- nil
		}
	}
	o.waiters = nil
}

// apply takes a new text of the server's entry.
func (o *owner) apply(next *mcpconfig.Server) {
	old := o.entry
	if old.Digest() == next.Digest() && old.Origin == next.Origin {
		return
	}
	o.entry = next
	edited := old.Digest() != next.Digest()
	wasForced := o.forced
	if edited {
		o.forced = false
	}
	switch {
	case !next.Enabled:
		if o.status.State != source.Disabled {
			o.halt(source.Disabled)
			return
		}
	case !edited || o.status.State == source.Stopped || o.status.State == source.Stopping:
		// stays as a person left it
	case o.status.State == source.Ready || o.status.State == source.Starting:
		if old.NeedsRestart(next) || (wasForced && next.InheritEnv) {
			o.restart()
			return
		}
	default: // disabled, backoff, parked, failed: an edit is a new chance
		o.restart()
		return
	}
	o.publish()
}

// wake tries a parked server because a call wants it: once for all calls, and
// at most every half minute.
func (o *owner) wake() bool {
	if o.status.State != source.Parked {
		return true
	}
	if !o.lastWake.IsZero() && time.Since(o.lastWake) < wakeEvery {
		return false
	}
	o.lastWake = time.Now()
	o.again()
	return true
}
