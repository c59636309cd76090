// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// replaceEvery is the least time between two sessions that were forgotten and are
// replaced at once.
const replaceEvery = 30 * time.Second

// An owner is what the one goroutine of a server knows. Nothing here is touched
// by another.
type owner struct {
	server *Server
	entry  *mcpconfig.Server
	status source.Status
	policy backoff.Policy

	generation uint64
	running    Context            // of the run; nil when there is none
	stopRun    context.CancelFunc // ends it; likewise
	next       source.State       // what the end of a run that is being stopped leads to; else empty
	why        string             // it is being stopped
	link       *usage             // of the run, once ready
	timer      *time.Timer        // the one thing that is due
	due        func()             // what to do when timer fires
	lastWake   time.Time
	lastLoss   time.Time         // when a forgotten session was replaced at once
	starters   []chan<- error    // wait for the outcome of a start
	stoppers   []chan<- error    // wait for the end of a run
	leftovers  []<-chan struct{} // each closed when what a run left behind is gone after all
}

// begin starts the owner, and its first run unless the server is disabled. Those
// of the leaving servers that had its name end before it runs.
func (s *Server) begin(leaving []*Server) {
	for _, old := range leaving {
		if old.name == s.name {
			s.before = append(s.before, old.done)
		}
	}
	o := &owner{server: s, entry: s.entry, policy: backoff.New(), timer: time.NewTimer(time.Hour)}
	o.policy.Resume(s.failedBefore())
	o.timer.Stop()
	o.status.State, o.status.Since = rest(o.entry), time.Now()
	o.status.Asleep = o.entry.Enabled && s.isLazy(o.entry)
	o.publish()
	if o.entry.Enabled && !o.status.Asleep {
		o.start()
	}
	go o.loop() // ends when end is called and the run is over; Close waits for it
}

// loop owns the server until its life ends and no run is left.
func (o *owner) loop() {
	defer o.leave()
	stop, mail := o.server.life.Done(), o.server.mail
	for {
		select {
		case command := <-mail:
			command(o)
		case report := <-o.server.reports:
			report(o)
		case <-o.timer.C:
			if due := o.due; due != nil {
				o.due = nil
				due()
			}
		case <-stop:
			stop, mail = nil, nil // who still writes is told by done
			o.become(rest(o.entry), o.stopped().Message)
		}
		if stop == nil && o.stopRun == nil {
			return
		}
	}
}

// leave is the owner's last act.
func (o *owner) leave() {
	s := o.server
	for _, gone := range o.leftovers {
		s.left = s.left || !isClosed(gone)
	}
	close(s.done)
}

// rest is the state of a server that nobody starts.
func rest(entry *mcpconfig.Server) source.State {
	if !entry.Enabled {
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
	if from == to && f == nil && o.status.Asleep == o.server.Status().Asleep {
		o.publish()
		return
	}
	if !possible(from, to) {
		o.warn(fmt.Sprintf("a bug in garra: moved from %s to %s", from, to))
	}
	o.status.State, o.status.Since = to, time.Now()
	if f != nil || to == source.Ready { // what is in order has no error; events tell what it had
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

func (o *owner) warn(message string) {
	o.tell(source.Event{Kind: source.EventWarning, Message: message})
}

// tell completes an event and hands it on.
func (o *owner) tell(e source.Event) {
	e.Time, e.Origin, e.State, e.PID = time.Now(), o.server.Origin(), o.status.State, o.status.PID
	e.Message = o.server.options.Redact(e.Message)
	if hook := o.server.options.Hooks.Event; hook != nil {
		hook(e)
	}
}

// start begins a run. The caller has made sure that there is none.
func (o *owner) start() {
	o.in(0, nil)
	o.generation++
	ctx, cancel := context.WithCancel(context.Background())
	o.running, o.stopRun = ctx, cancel
	o.status.Secrets, o.status.Asleep = nil, false
	run := &Run{Entry: o.entry, server: o.server, generation: o.generation}
	o.move(source.Starting, nil)
	go run.play(ctx) // ends when nothing of the run is left; loop waits for it
}

// play makes the run and reports its end.
func (r *Run) play(ctx Context) {
	out := r.inTurn(ctx)
	if ctx.Err() != nil && out.Leftover == nil {
		out.Failure = nil // whatever went wrong while it was being stopped is no failure
	}
	r.tell(func(o *owner) { o.ended(&out) })
}

// inTurn makes the run, after all that had the server's name before.
func (r *Run) inTurn(ctx Context) Outcome {
	for _, gone := range r.server.before {
		select {
		case <-gone:
		case <-ctx.Done():
			return Outcome{}
		}
	}
	return r.server.runner.Run(ctx, r)
}

// ready is the end of a good start.
func (o *owner) ready(link Link, hello *source.Hello) {
	if o.status.State != source.Starting {
		return // it is being stopped
	}
	o.link, o.status.Hello, o.status.Tried = newUsage(o.entry.Name, link), hello, true
	o.policy.Ready(time.Now())
	o.move(source.Ready, nil)
	o.watchIdle()
	answer(&o.starters, nil)
}

// ended takes the end of a run: one that was stopped goes on to what was
// planned, any other is a failure.
func (o *owner) ended(out *Outcome) {
	out.Failure = Redacted(out.Failure, o.server.options.Redact)
	answered := o.link != nil && o.link.Answered()
	o.stopRun()
	o.running, o.stopRun, o.link = nil, nil, nil
	o.status.PID, o.status.Hello, o.status.Tried = 0, nil, true
	o.status.Limits = source.Limits{}
	if out.Leftover != nil {
		o.leftovers = append(o.leftovers, out.Leftover)
	}
	if next := o.next; next != "" {
		o.next = ""
		o.policy.Ended(time.Now(), answered)
		o.remember(out, o.why)
		if out.Failure != nil { // it ended by itself while its calls ended, or something of it stays
			o.warn(out.Failure.Error())
		}
		if out.Leftover == nil {
			out.Failure = nil
		}
		o.arrive(next, out.Failure)
		return
	}
	if out.Failure == nil {
		out.Failure = source.Fail(source.ServerCrashed, o.entry.Name, "the server ended")
	}
	o.fail(out, answered)
	o.remember(out, "")
	answer(&o.starters, out.Failure)
}

// fail decides when a failed server is tried again.
func (o *owner) fail(out *Outcome, answered bool) {
	if out.Permanent {
		o.lookIn(o.policy.Failed(o.server.options.Recheck))
		o.move(source.Failed, out.Failure)
		return
	}
	if out.Forgotten && (o.lastLoss.IsZero() || time.Since(o.lastLoss) >= replaceEvery) {
		o.lastLoss = time.Now() // the server is there, so a new session needs no patience
		o.againIn(0)
		o.move(source.Backoff, out.Failure)
		return
	}
	limit := o.entry.MaxRestarts
	if o.server.options.Once {
		limit = 0
	}
	wait, parked := o.policy.Crashed(time.Now(), answered, o.entry.RestartDelay, limit)
	if limit == 0 {
		o.in(0, nil) // never by itself
	} else {
		o.againIn(wait)
	}
	if parked {
		o.move(source.Parked, out.Failure)
	} else {
		o.move(source.Backoff, out.Failure)
	}
}

// againIn restarts by policy after some time, in its turn among all servers.
func (o *owner) againIn(wait time.Duration) {
	o.in(wait, func() {
		if more := o.server.options.Rate.Take(time.Now()); more > 0 {
			o.in(more, o.again)
			o.status.NextTry = time.Now().Add(more)
			o.publish()
			return
		}
		o.again()
	})
	o.status.NextTry = time.Now().Add(wait)
}

// again is a restart without further waiting.
func (o *owner) again() {
	o.status.Restarts++
	o.start()
}

// lookIn has the cause of a failed start looked for after d, and again every d
// until that is gone.
func (o *owner) lookIn(d time.Duration) { o.in(d, func() { o.look(d) }) }

// look starts a failed server if nothing stands in its way any more; else it
// says what does, and looks again after some time. Looking reads files and asks
// for secrets, so it isn't for the owner's goroutine.
func (o *owner) look(again time.Duration) {
	s, generation, entry := o.server, o.generation, o.entry
	go func() { // ends when the runner has looked; nobody waits, a late word is dropped
		obstacle := s.runner.Obstacle(s.life, entry)
		if s.life.Err() != nil {
			return // the look was cut short
		}
		_ = s.ask(context.Background(), func(o *owner) { // an error means that the owner is gone
			switch {
			case o.generation != generation || o.status.State != source.Failed:
			case o.entry != entry: // which has moved in its file meanwhile
				o.look(again)
			case obstacle == nil:
				o.start()
			default:
				o.lookIn(again)
				o.status.LastError = obstacle
				o.publish()
			}
		})
	}()
}
