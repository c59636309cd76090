// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// maxProgress times its timeout is the longest that progress can keep a call
// alive: the specification asks for a maximum regardless of progress
// ("Lifecycle", timeouts).
const maxProgress = 12

// A call is one request in flight on a link.
type call struct {
	id       uint64
	client   source.Client
	token    protocol.ID // the client's progress token; zero when it has none
	deadline time.Time   // that progress can't move
	timeout  time.Duration
	timer    *time.Timer
	done     chan reply // takes exactly one
}

// A reply is what came of a call.
type reply struct {
	result Raw
	err    error
}

// end hands the reply over. The link calls it once for each call.
func (c *call) end(r reply) {
	c.timer.Stop()
	c.done <- r
}

// call sends a request and waits for its answer. timeout restarts whenever the
// server reports progress.
func (l *link) call(ctx Context, req *source.Call, timeout time.Duration) (Raw, error) {
	c := &call{
		client: req.Client, token: req.Progress, timeout: timeout,
		deadline: time.Now().Add(maxProgress * timeout),
		done:     make(chan reply, 1),
	}
	if err := l.register(c, req.Method); err != nil {
		return nil, err
	}
	m := protocol.NewRequest(protocol.NumberID(c.id), req.Method, withToken(req, c.id))
	if err := l.send(ctx, m); err != nil {
		l.finish(c.id, reply{err: l.notSent(ctx, err)})
	}
	select {
	case r := <-c.done:
		return r.result, r.err
	case <-ctx.Done():
		l.finish(c.id, reply{err: cancelled(ctx, l.server)})
		go l.cancel(c.id, reasonOf(ctx)) // ends within the second that notify gives it
		r := <-c.done
		return r.result, r.err
	}
}

// register gives the call its id and its timer.
func (l *link) register(c *call, method string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return fmt.Errorf("%w: %w", errClosedBefore, l.failure)
	}
	l.next++
	c.id = l.next
	l.pending[c.id] = c
	c.timer = time.AfterFunc(c.timeout, func() { l.expire(c, method) })
	return nil
}

// expire ends a call that took too long, and tells the server.
func (l *link) expire(c *call, method string) {
	l.finish(c.id, reply{err: &source.Failure{
		Code: source.CallTimeout, Server: l.server,
		Message: fmt.Sprintf("%s got no answer within %s", method, c.timeout),
		Fix:     "raise callTimeoutSecs of this server if the call may take that long",
	}})
	l.cancel(c.id, "timed out")
}

// cancel tells the server that nobody waits for a request any more. initialize
// must not be cancelled; a run whose handshake fails is stopped instead.
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
	left := time.Until(c.deadline)
	c.timer.Reset(max(0, min(c.timeout, left)))
}

// notSent says why a request could not be written.
func (l *link) notSent(ctx Context, err error) error {
	if ctx.Err() != nil {
		return cancelled(ctx, l.server)
	}
	return &source.Failure{
		Code: source.ServerCrashed, Server: l.server, Cause: err,
		Message: "the server closed its standard input: " + err.Error(),
	}
}

// cancelled is the failure of a call whose context ended.
func cancelled(ctx Context, server string) *source.Failure {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return source.Fail(source.CallTimeout, server, "the call got no answer in time")
	}
	return &source.Failure{
		Code: source.CallCancelled, Server: server, Message: "the call was cancelled", Cause: context.Cause(ctx),
	}
}

// reasonOf is what the client gave as its reason to cancel, empty when none.
func reasonOf(ctx Context) string {
	if c, ok := errors.AsType[*source.CancelError](context.Cause(ctx)); ok {
		return c.Reason
	}
	return ""
}

// withToken returns the request's params with garra's progress token, which is
// the request's id, in the place of the client's.
func withToken(req *source.Call, id uint64) Raw {
	if req.Progress.IsZero() {
		return req.Params
	}
	params, err := protocol.ParseObject(req.Params)
	if err != nil {
		return req.Params
	}
	meta, err := protocol.ParseObject(params.Get("_meta"))
	if err != nil {
		return req.Params
	}
	meta.Set("progressToken", Raw(strconv.FormatUint(id, 10)))
	params.Set("_meta", meta.Raw())
	return params.Raw()
}
