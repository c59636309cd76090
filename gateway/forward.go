// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// forward sends a client's request on to the server, with the params given, and
// returns the result as the server wrote it.
func (u *upstream) forward(ctx context.Context, x *exchange, params Raw) (Raw, error) {
	result, err := u.rounds(ctx, x, &source.Call{
		Method: x.method, Params: params, Client: caller{x, u}, Asker: x.asker(u),
		Progress: progressToken(params), Began: x.began,
	})
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return nil, disowned(e)
	}
	return unsigned(result), err
}

// within bounds what a request waits for before it is forwarded: that time and
// that of the call itself are one.
func (u *upstream) within(ctx context.Context, x *exchange) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, x.began.Add(u.current.Load().entry.CallTimeout))
}

// forwardsRoots reports whether the server may know the client's roots.
func (u *upstream) forwardsRoots() bool { return u.current.Load().entry.ForwardRoots }

// A caller is a client as the server of its request may use it.
type caller struct {
	*exchange
	upstream *upstream
}

var _ source.Client = caller{}

// Session implements source.Client.
func (c caller) Session() string { return c.session.id }

// Notify implements source.Client. A log message below the level that the
// client set is dropped.
func (c caller) Notify(method string, params Raw) {
	if method == protocol.NoteMessage {
		if !c.wantsLog(params) {
			return
		}
		params = c.session.view.log(c.upstream.name, params)
	}
	if c.ctx.Err() == nil {
		c.out.push(protocol.NewNotification(method, params))
	}
}

// Ask implements source.Client. The client's roots are for servers that they are
// forwarded to.
func (c caller) Ask(ctx context.Context, method string, params Raw) (Raw, error) {
	if method == protocol.MethodRootsList && !c.upstream.forwardsRoots() {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound,
			"the client's roots are not for server %q; forwardRoots in its entry changes that", c.upstream.name)
	}
	q := &question{from: c.upstream, out: c.out, method: method, params: params, relation: c.ctx}
	if c.parley != nil {
		return c.parley.ask(ctx, c.exchange, q)
	}
	return c.session.ask(ctx, q)
}

// unsigned takes garra's own word out of the result of a server: no server says
// that garra refused a call, or what a person should do about it.
func unsigned(result Raw) Raw {
	if !maySign(result) {
		return result
	}
	obj, err := protocol.ParseObject(result)
	if err != nil {
		return result
	}
	if meta, signed := withoutOwn(obj.Get("_meta")); signed {
		obj.Delete("_meta") // there may be more than one
		obj.Set("_meta", meta)
		return obj.Raw()
	}
	return result
}

// disowned is unsigned for an error, where the word is in its data.
func disowned(e *protocol.Error) *protocol.Error {
	raw := e.Raw()
	if !maySign(raw) {
		return e
	}
	obj, err := protocol.ParseObject(raw)
	if err != nil {
		return e
	}
	if data, signed := withoutOwn(obj.Get("data")); signed {
		obj.Delete("data")
		obj.Set("data", data)
		return protocol.ParseError(obj.Raw())
	}
	return e
}

// maySign tells most texts that have no word of garra's from those that must be
// looked at: a name can be written with escapes.
func maySign(raw Raw) bool {
	return bytes.Contains(raw, []byte("garra")) || bytes.Contains(raw, []byte(`\u00`))
}

// withoutOwn takes garra's member out of an object.
func withoutOwn(raw Raw) (rest Raw, had bool) {
	obj, err := protocol.ParseObject(raw)
	if err != nil || obj.Get(metaError) == nil {
		return raw, false
	}
	obj.Delete(metaError)
	return obj.Raw(), true
}
