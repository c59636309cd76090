// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// restart stops the server if it runs, and starts it; why is what is remembered of the
// run that ends.
func (o *owner) restart(why string) {
	o.policy.Reset()
	o.status.LastError = nil
	o.become(source.Starting, why)
}

// restartByHand is a start by a person, who waits for the outcome.
func (o *owner) restartByHand(outcome chan<- error) {
	if !o.entry.Enabled {
		outcome <- disabledFailure(o.entry)
		return
	}
	if f := o.server.runner.ByHand(o.entry); f != nil {
		outcome <- f
		return
	}
	o.starters = append(o.starters, outcome)
	o.restart("somebody restarted it")
}

// become ends the run, if there is one, and goes on to Starting, Stopped or
// Disabled.
func (o *owner) become(next source.State, why string) {
	o.in(0, nil)
	if o.stopRun == nil {
		o.arrive(next, nil)
		return
	}
	used, ends := o.link, o.next != ""
	o.next, o.why = next, why
	o.link, o.status.Hello = nil, nil
	o.move(source.Stopping, nil)
	if !ends {
		o.endRun(used)
	}
}

// endRun stops the run, once the calls in flight over its link have their answers, or
// have had their time. The link is nil when the run isn't ready.
func (o *owner) endRun(used *usage) {
	if used == nil {
		o.stopRun()
		return
	}
	running, stop, patience := o.running, o.stopRun, o.server.options.Drain
	go func() { // ends within that time, or with the run
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-used.drain():
		case <-timer.C:
		case <-running.Done():
		}
		stop()
	}()
}

// arrive is the end of become, when no run is left; failure is set when
// something of the last one is. Who waits hears of it after everybody can see
// the new state.
func (o *owner) arrive(next source.State, failure *source.Failure) {
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
	answer(&o.stoppers, failure)
}

// stopped is why a start came to nothing because of a stop.
func (o *owner) stopped() *source.Failure {
	if over := context.Cause(o.server.life); over != nil {
		return source.AsFailure(over, source.ServerStopped, o.entry.Name)
	}
	return StoppedFailure(o.entry.Name)
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
	if !edited { // the place changed, nothing else
		if o.quotes(old.Origin.File) {
			o.in(0, func() { o.look(o.server.options.Recheck) })
		}
		o.publish()
		return
	}
	replace := o.server.runner.Edited(old, next)
	switch goal := o.goal(); {
	case !next.Enabled && goal != source.Disabled:
		o.status.Asleep = false
		o.become(source.Disabled, "it was disabled")
	case o.status.Asleep && o.server.isLazy(next), !next.Enabled, goal == source.Stopped && !o.status.Asleep:
		o.publish() // sleeps on, or stays as a person left it
	case (goal == source.Ready || goal == source.Starting) && !replace:
		o.publish()
		o.watchIdle()
	default: // in backoff, parked, failed and disabled, an edit is a new chance
		o.restart("its entry was edited")
	}
}

// rotate takes that secrets have changed, and reports whether the server is restarted
// for that.
func (o *owner) rotate(changed func(key string) bool) bool {
	if o.status.State == source.Failed {
		o.in(0, func() { o.look(o.server.options.Recheck) })
		return false
	}
	goal, i := o.goal(), slices.IndexFunc(o.status.Secrets, changed)
	switch {
	case !o.server.options.KeepsSecrets:
		return false
	case goal == source.Starting && o.stopRun != nil && o.status.Secrets == nil: // it may have read the old values
		o.restart("a secret was changed")
		return false
	case i < 0 || goal != source.Starting && goal != source.Ready:
		return false
	}
	why := fmt.Sprintf("the secret %q has changed", o.status.Secrets[i])
	o.warn("it is restarted, since " + why)
	o.restart(why)
	return true
}

// renew starts a server again that runs, since what its entry refers to is another.
func (o *owner) renew(why string) {
	switch goal := o.goal(); {
	case o.status.State == source.Failed:
		o.in(0, func() { o.look(o.server.options.Recheck) })
	case goal == source.Ready || goal == source.Starting:
		o.warn("it is restarted, since " + why)
		o.restart(why)
	}
}

// quotes reports whether the server failed for something in a file, of which the
// failure names the line.
func (o *owner) quotes(file string) bool {
	return o.status.State == source.Failed && strings.Contains(o.status.LastError.Message, file+":")
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
