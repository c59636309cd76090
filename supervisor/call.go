// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
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

// A call is one request in flight on a link.
type call struct {
	id       uint64
	client   source.Client
	token    protocol.ID // the client's progress token; zero when it has none
	deadline time.Time   // that progress can't move
	timeout  time.Duration
	timer    *time.Timer
	done     chan reply // takes exactly one
	over     func()     // nobody needs to write the request any more
}

// A reply is what came of a call.
type reply struct {
	result Raw
	err    error
	lost   bool   // it was the link that ended
	gaveUp bool   // garra no longer waits, and the server should know,
	reason string // with this reason
}

// end hands the reply over. The link calls it once for each call.
func (c *call) end(r reply) {
	c.timer.Stop()
	c.done <- r
	c.over()
}

// Call implements lifecycle.Link.
func (l *link) Call(ctx Context, c *source.Call) (Raw, error) {
	l.working.Add(1)
	defer l.working.Add(-1)
	return l.call(ctx, c, budget{timeout: c.Timeout, began: c.Began})
}

// busy reports whether the server has something to do.
func (l *link) busy() bool { return l.working.Load() > 0 }

// call sends a request and waits for its answer.
func (l *link) call(ctx Context, req *source.Call, b budget) (Raw, error) {
	ear := l.ear.Load()
	if result, done, err := ear.Answer(ctx, req); done {
		return result, err
	}
	writing, over := context.WithCancel(ctx)
	defer over()
	c := &call{
		client: req.Client, token: req.Progress, timeout: b.timeout,
		deadline: b.began.Add(maxProgress * b.timeout),
		done:     make(chan reply, 1),
		over:     over,
	}
	if err := l.register(c, req.Method, b); err != nil {
		return nil, err
	}
	params := eras.Addressed(req.Tokened(c.id), req.Asker, ear != nil)
	m := protocol.NewRequest(protocol.NumberID(c.id), req.Method, params)
	begun, err := l.send(writing, m)
	broken := errors.Is(err, errInputClosed)
	if broken {
		l.finish(c.id, reply{err: err, lost: true})
	}
	r := l.await(ctx, c)
	if r.lost && (broken || !begun) {
		return nil, &lifecycle.Undelivered{Cause: r.err}
	}
	if r.gaveUp && begun && req.Method != protocol.MethodInitialize { // which must not be cancelled
		l.cancel(c.id, r.reason)
		l.owing.Store(l.owing.Load() || l.busy()) // a question of garra's own is no work
	}
	return r.result, r.err
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
func (l *link) register(c *call, method string, b budget) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return &lifecycle.Undelivered{Cause: l.failure}
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
	o := protocol.Object{}
	o.Set("requestId", protocol.NumberID(id).Raw())
	if reason != "" {
		o.Set("reason", protocol.Quote(reason))
	}
	l.notify(protocol.NoteCancelled, o.Raw())
}

// progressed restarts the call's timer.
func (c *call) progressed() {
	c.timer.Reset(max(0, min(c.timeout, time.Until(c.deadline))))
}
