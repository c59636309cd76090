// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// An owner is what the one goroutine of a server knows. Nothing here is touched
// by another.
type owner struct {
	server *Server
	entry  *mcpconfig.Server
	status source.Status
	policy backoff.Policy

	generation uint64
	stopRun    context.CancelFunc // nil when there is no run
	next       source.State       // what the end of a run that is being stopped leads to; else empty
	link       *link              // of the run, once ready
	timer      *time.Timer        // the one thing that is due
	due        func()             // what to do when timer fires
	lastWake   time.Time
	lastLoss   time.Time      // when a lost session was replaced at once
	starters   []chan<- error // wait for the outcome of a start
	stoppers   []chan<- error // wait for the end of a run
}

// A command is what others send to the owner; do runs in its goroutine.
type command struct{ do func(*owner) }

// loop owns the server until its life ends and no run is left.
func (o *owner) loop() {
	defer close(o.server.done)
	stop, mail := o.server.life.Done(), o.server.mail
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
			o.become(o.rest())
		}
		if stop == nil && o.stopRun == nil {
			return
		}
	}
}

// rest is the state in which an owner leaves its server.
func (o *owner) rest() source.State {
	if !o.entry.Enabled {
		return source.Disabled
	}
	return source.Stopped
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
	if from == to && f == nil {
		o.publish()
		return
	}
	o.status.State, o.status.Since = to, time.Now()
	if f != nil {
		o.status.LastError = f
	}
	o.publish()
	e := source.Event{Kind: source.EventState, From: from, Failure: f}
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

// tell completes an event and hands it on.
func (o *owner) tell(e source.Event) {
	e.Time, e.Server, e.State = time.Now(), o.entry.Name, o.status.State
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
	ord := order{entry: o.entry, generation: o.generation, server: o.server}
	o.move(source.Starting, nil)
	go o.server.launch(ctx, ord, o.server.report) // ends when the session is over; loop waits for it
}

// progress takes a run's report.
func (o *owner) progress(p progress) {
	switch {
	case p.generation != o.generation: // of a run that is over already
	case p.ended != nil:
		o.ended(p.ended)
	case p.warning != "":
		o.tell(source.Event{Kind: source.EventWarning, Message: p.warning})
	case p.link != nil && o.status.State == source.Starting: // else it is being stopped
		o.link, o.status.Hello, o.status.Tried = p.link, p.hello, true
		o.policy.Ready(time.Now())
		o.move(source.Ready, nil)
		answer(&o.starters, nil)
	}
}

// ended takes the end of a run: one that was stopped goes on to what was
// planned, any other is a failure.
func (o *owner) ended(out *outcome) {
	answered := o.link != nil && o.link.answered.Load()
	o.stopRun()
	o.stopRun, o.link = nil, nil
	o.status.Hello, o.status.Tried = nil, true
	if next := o.next; next != "" {
		o.next = ""
		o.arrive(next)
		return
	}
	if out.failure == nil {
		out.failure = source.Fail(source.ServerCrashed, o.entry.Name, "the session ended")
	}
	o.fail(out, answered)
	answer(&o.starters, out.failure)
}

// fail decides when a failed server is tried again.
func (o *owner) fail(out *outcome, answered bool) {
	if out.permanent {
		o.lookIn(o.policy.Failed(o.server.limits.recheck))
		o.move(source.Failed, out.failure)
		return
	}
	if out.forgotten && (o.lastLoss.IsZero() || time.Since(o.lastLoss) >= o.server.limits.again) {
		o.lastLoss = time.Now() // the server is there, so a new session needs no patience
		o.in(0, o.again)
		o.move(source.Backoff, out.failure)
		return
	}
	limit := o.entry.MaxRestarts
	if o.server.once {
		limit = 0
	}
	wait, parked := o.policy.Crashed(time.Now(), answered, o.entry.RestartDelay, limit)
	if limit == 0 {
		o.in(0, nil) // never by itself
	} else {
		o.in(wait, o.again)
		o.status.NextTry = time.Now().Add(wait)
	}
	if parked {
		o.move(source.Parked, out.failure)
	} else {
		o.move(source.Backoff, out.failure)
	}
}

// again is a restart by policy.
func (o *owner) again() {
	o.status.Restarts++
	o.start()
}

// lookIn has the cause of a failed start looked for after d, and starts the
// server once that is gone. Looking may ask for secrets, so it isn't for the
// owner's goroutine.
func (o *owner) lookIn(d time.Duration) {
	o.in(d, func() {
		s, generation, entry := o.server, o.generation, o.entry
		go func() { // ends when the references were resolved or not; nobody waits, a late word is dropped
			mended := s.mended(entry)
			_ = s.ask(context.Background(), func(o *owner) { // an error means that the owner is gone
				switch {
				case o.generation != generation || o.status.State != source.Failed:
				case mended:
					o.start()
				default:
					o.lookIn(d)
				}
			})
		}()
	})
}

// restart ends the run if there is one, and starts another.
func (o *owner) restart() {
	o.policy.Reset()
	o.status.LastError = nil
	o.become(source.Starting)
}

// restartFor is a start by a person, who waits for the outcome.
func (o *owner) restartFor(outcome chan<- error) {
	if !o.entry.Enabled {
		outcome <- disabledFailure(o.entry)
		return
	}
	o.starters = append(o.starters, outcome)
	o.restart()
}

// become ends the run, if there is one, and goes on to Starting, Stopped or
// Disabled.
func (o *owner) become(next source.State) {
	o.in(0, nil)
	if o.stopRun == nil {
		o.arrive(next)
		return
	}
	o.next = next
	o.link, o.status.Hello = nil, nil
	o.move(source.Stopping, nil)
	o.stopRun()
}

// arrive is the end of become, when no run is left. Who waits hears of it after
// everybody can see the new state.
func (o *owner) arrive(next source.State) {
	switch next {
	case source.Starting:
		o.start()
	case source.Disabled:
		o.move(next, nil)
		answer(&o.starters, disabledFailure(o.entry))
	default:
		o.move(next, nil)
		answer(&o.starters, o.stopped())
	}
	answer(&o.stoppers, nil)
}

// stopped is why a start came to nothing because of a stop.
func (o *owner) stopped() *source.Failure {
	if over := context.Cause(o.server.life); over != nil {
		return source.AsFailure(over, source.ServerStopped, o.entry.Name)
	}
	return stoppedFailure(o.entry.Name)
}

// goal is the state that the server is in, or on its way to once its run has
// ended.
func (o *owner) goal() source.State {
	if o.next != "" {
		return o.next
	}
	return o.status.State
}

// answer tells those who wait how it ended, each once.
func answer(waiting *[]chan<- error, f *source.Failure) {
	for _, w := range *waiting {
		if f != nil {
			w <- f
		} else {
			w <- nil
		}
	}
	*waiting = nil
}

// apply takes a new text of the server's entry.
func (o *owner) apply(next *mcpconfig.Server) {
	old := o.entry
	edited := old.Digest() != next.Digest()
	if !edited && old.Origin == next.Origin {
		return
	}
	o.entry = next
	if !edited {
		o.publish() // the place changed, nothing else
		return
	}
	switch goal := o.goal(); {
	case !next.Enabled && goal != source.Disabled:
		o.become(source.Disabled)
	case !next.Enabled, goal == source.Stopped:
		o.publish() // stays as a person left it
	case (goal == source.Ready || goal == source.Starting) && !old.NeedsRestart(next):
		o.publish()
	default: // in backoff, parked, failed and disabled, an edit is a new chance
		o.restart()
	}
}

// wake tries a parked server because a call wants it: once for all calls, and
// at most every half minute.
func (o *owner) wake() bool {
	if o.status.State != source.Parked {
		return true
	}
	if !o.lastWake.IsZero() && time.Since(o.lastWake) < backoff.WakeEvery {
		return false
	}
	o.lastWake = time.Now()
	o.again()
	return true
}
