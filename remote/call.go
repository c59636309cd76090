// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// maxProgress times its timeout is the longest that progress can keep a call
// alive: the specification asks for a maximum regardless of progress
// ("Lifecycle", timeouts).
const maxProgress = 12

// A budget is the time that a call has: timeout, which progress restarts, from
// when it began, which includes the wait for its server.
type budget struct {
	timeout time.Duration
	began   time.Time
}

// from is a budget that begins now.
func from(timeout time.Duration) budget { return budget{timeout: timeout, began: time.Now()} }

// A call is one request in flight on a link.
type call struct {
	id       uint64
	client   source.Client
	token    protocol.ID // the client's progress token; zero when it has none
	deadline time.Time   // that progress can't move
	timeout  time.Duration
	timer    *time.Timer
	settled  atomic.Bool // end was called
	done     chan reply  // takes exactly one
	linger   time.Duration
	over     func() // ends the request and its stream
}

// A reply is what came of a call.
type reply struct {
	result   Raw
	err      error
	answered bool    // by the server
	mishap   *mishap // it was the wire that failed
	lost     bool    // it was the link that ended
	gaveUp   bool    // garra no longer waits, and the server should know,
	reason   string  // with this reason
}

// end hands the reply over. The link calls it once for each call. The stream of
// one that was answered is left a moment to end by itself, so that the
// connection can be used again.
func (c *call) end(r reply) {
	c.timer.Stop()
	c.settled.Store(true)
	if r.answered {
		time.AfterFunc(c.linger, c.over)
	} else {
		c.over()
	}
	c.done <- r
}

// call sends a request and waits for its answer. One that had certainly no
// effect fails with a *lifecycle.Undelivered.
func (l *link) call(ctx Context, req *source.Call, b budget) (Raw, error) {
	if result, done, err := l.hearing().Answer(ctx, req); done {
		return result, err
	}
	r := l.exchange(ctx, req, b)
	if r.err == nil && req.Method == protocol.MethodToolsList {
		r.result = l.learn(r.result)
	}
	if r.mishap != nil && r.mishap.unsent {
		return nil, &lifecycle.Undelivered{Cause: r.err, Forgotten: r.mishap.forgotten}
	}
	return r.result, r.err
}

// exchange sends a request and waits for what comes of it.
func (l *link) exchange(ctx Context, req *source.Call, b budget) reply {
	sending, over := context.WithCancel(l.life)
	c := &call{
		client: req.Client, token: req.Progress, timeout: b.timeout,
		deadline: b.began.Add(maxProgress * b.timeout),
		done:     make(chan reply, 1),
		linger:   l.limits.linger,
		over:     over,
	}
	if m := l.register(c, req.Method, b); m != nil {
		over()
		return reply{err: m.failure, mishap: m}
	}
	modern := l.modern.Load()
	params := eras.Addressed(req.Tokened(c.id), req.Asker, modern != nil)
	p := &parcel{
		message: protocol.NewRequest(protocol.NumberID(c.id), req.Method, params), call: c,
		header: modern.headers(req.Method, params),
	}
	l.goes(func() { l.deliver(sending, p) }) // when it is too late for that, the call was ended already
	r := l.await(ctx, c)
	switch {
	case r.lost && p.abandon():
		r.mishap = &mishap{failure: source.AsFailure(r.err, source.ServerCrashed, l.server), unsent: true}
	case r.gaveUp && !p.abandon() && req.Method != protocol.MethodInitialize: // which must not be cancelled
		l.cancel(c.id, r.reason)
	}
	return r
}

// deliver sends a request, and returns when nothing more comes of that.
func (l *link) deliver(ctx Context, p *parcel) {
	defer p.call.over()
	m := l.wire.send(ctx, p)
	if m == nil || ctx.Err() != nil && m.status == 0 {
		return // it is answered, or was given up, or close says why not
	}
	l.finish(p.call.id, reply{err: m.failure, mishap: m})
	l.heed(m)
}

// await waits for what comes of a call.
func (l *link) await(ctx Context, c *call) reply {
	select {
	case r := <-c.done:
		return r
	case <-ctx.Done():
		l.finish(c.id, reply{err: source.Cancelled(ctx, l.server), gaveUp: true, reason: source.CancelReason(ctx)})
		return <-c.done
	}
}

// register gives the call its id and its timer.
// It fails when the link takes no more calls.
func (l *link) register(c *call, method string, b budget) *mishap {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failure != nil:
		return &mishap{failure: l.failure, unsent: true}
	case l.fate != nil:
		return &mishap{failure: l.fate.failure, unsent: true}
	}
	l.next++
	c.id = l.next
	l.pending[c.id] = c
	c.timer = time.AfterFunc(max(time.Until(b.began.Add(b.timeout)), 0), func() { l.expire(c, method) })
	return nil
}

// expire ends a call that took too long.
func (l *link) expire(c *call, method string) {
	f := &source.Failure{
		Code: source.CallTimeout, Server: l.server,
		Message: fmt.Sprintf("%s got no answer within %s", method, c.timeout),
		Fix:     "raise callTimeoutSecs of this server if the call may take that long",
	}
	if !time.Now().Before(c.deadline) {
		f.Message = fmt.Sprintf("%s reported progress, but got no answer within %s", method, maxProgress*c.timeout)
	}
	l.finish(c.id, reply{err: f, gaveUp: true, reason: "timed out"})
}

// cancel tells the server that nobody waits for a request any more.
func (l *link) cancel(id uint64, reason string) {
	l.notify(protocol.NoteCancelled, cancellation(id, reason))
}

// cancellation is what takes a request back, with a reason unless that is empty.
func cancellation(id uint64, reason string) Raw {
	o := protocol.Object{}
	o.Set("requestId", protocol.NumberID(id).Raw())
	if reason != "" {
		o.Set("reason", protocol.Quote(reason))
	}
	return o.Raw()
}

// progressed restarts the call's timer.
func (c *call) progressed() {
	c.timer.Reset(max(0, min(c.timeout, time.Until(c.deadline))))
}
