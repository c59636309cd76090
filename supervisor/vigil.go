// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	missesAllowed = 2 // questions in a row without an answer, from a server that has nothing to do
	missesBusy    = 9 // and from one that may be busy: it computes, or a call to it was given up

	busyShare = 0.5 // of a processor, used by a server that computes
)

// A vigil looks whether a ready server still lives, by what can be seen of its process and
// by what it says. A server that is busy is left alone: as long as a call is in flight, that
// call's own time limit is what counts. It ends with the link.
type vigil struct {
	*attendance
	lists     string               // a request for a list that the server knows
	computing atomic.Bool          // it uses much of a processor
	gaveUp    chan *source.Failure // takes the reason to end the run
}

// keepVigil begins to look after the server; the first reason to end its run is sent.
func (a *attendance) keepVigil(hello *source.Hello) <-chan *source.Failure {
	const watchers = 2
	v := &vigil{attendance: a, lists: listMethod(hello), gaveUp: make(chan *source.Failure, watchers)}
	go v.watch() // both end with the link
	go v.listen()
	return v.gaveUp
}

// pause waits, and reports whether the link still lives then.
func (v *vigil) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-v.link.life.Done():
		return false
	}
}

// watch looks at the process: one that is suspended for long is not going to answer, whether
// a call is in flight or not. One that computes although nobody wants anything is told of.
func (v *vigil) watch() {
	var suspended time.Time // since when; zero when it isn't
	var idle effort
	told := false
	for v.pause(v.limits.look) {
		now, ok := v.proc.Look()
		if !ok {
			continue
		}
		switch {
		case !now.Stopped:
			suspended = time.Time{}
		case suspended.IsZero():
			suspended = time.Now()
		case time.Since(suspended) >= v.limits.suspended:
			v.wedged("it is suspended: something sent it SIGSTOP, and nothing SIGCONT")
			return
		}
		share, long := idle.goesOn(now.CPU, v.limits.spinning, !v.link.busy())
		v.computing.Store(share >= busyShare)
		if long && share >= v.limits.whole && !told {
			told = true
			v.run.Warn(fmt.Sprintf("server %q: it has used a whole processor for %s although no call is in flight; "+
				"`garra mcp restart %s` ends that", v.run.Entry.Name, v.limits.spinning, v.run.Entry.Name))
		}
	}
}

// An effort is how much a server has computed since some moment.
type effort struct {
	began time.Time
	cpu   time.Duration // that it had used then
}

// goesOn takes what the server has used by now, and returns how much of a processor that was
// since the effort began, and whether it is one of that length, after which the next begins.
// So it does when the server has something to do.
func (e *effort) goesOn(cpu, length time.Duration, idle bool) (share float64, long bool) {
	took := time.Since(e.began)
	share, long = float64(cpu-e.cpu)/float64(took), idle && took >= length && !e.began.IsZero()
	if !idle || long || e.began.IsZero() {
		*e = effort{time.Now(), cpu}
	}
	return share, long
}

// listen asks a server that says nothing and has nothing to do whether it is there.
func (v *vigil) listen() {
	misses, began := 0, time.Now()
	for heard := v.link.heard.Load(); v.pause(v.limits.idle); {
		if now := v.link.heard.Load(); now != heard || v.link.busy() {
			heard, misses = now, 0
			continue
		}
		if misses == 0 {
			began = time.Now()
		}
		err := v.ask(misses)
		if heard != v.link.heard.Load() || v.link.busy() || !isTimeout(err) {
			misses = 0
			continue
		}
		misses++
		allowed := missesAllowed
		if v.link.owing.Load() || v.computing.Load() {
			allowed = missesBusy
		}
		if misses > allowed {
			v.wedged(fmt.Sprintf("it has answered none of %d questions in %s", misses, age(began)))
			return
		}
	}
}

// ask asks something that takes no work, and returns what came of it. The spec has ping for
// that ("Ping"), until 2026-07-28, which has server/discover; servers that drop what they
// don't know are asked for a list in turn.
func (v *vigil) ask(turn int) error {
	req := &source.Call{Method: protocol.MethodPing}
	if v.link.ear.Load() != nil {
		req = &source.Call{Method: protocol.MethodDiscover, Params: eras.DiscoverParams()}
	} else if turn%2 == 1 {
		req = &source.Call{Method: v.lists}
	}
	_, err := v.link.call(v.link.life, req, budget{timeout: v.limits.answer, began: time.Now()})
	return err
}

// isTimeout reports whether an error says that no answer came in time. Any other error is an
// answer, or the end of the run.
func isTimeout(err error) bool {
	f, ok := errors.AsType[*source.Failure](err)
	return ok && f.Code == source.CallTimeout
}

// wedged gives the run up.
func (v *vigil) wedged(why string) {
	v.gaveUp <- &source.Failure{
		Code: source.ServerCrashed, Server: v.run.Entry.Name, Reason: source.ReasonWedged,
		Message: "wedged: " + why,
	}
}

// listMethod is a request for a list that a server with those capabilities knows.
func listMethod(hello *source.Hello) string {
	for _, known := range []struct{ capability, method string }{
		{"tools", protocol.MethodToolsList},
		{"resources", protocol.MethodResourcesList},
		{"prompts", protocol.MethodPromptsList},
	} {
		if hello.Declares(known.capability) {
			return known.method
		}
	}
	return protocol.MethodPing
}
