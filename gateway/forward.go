// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// forward sends a client's request on to the server, with the params given, and
// returns the result as the server wrote it.
func (u *upstream) forward(ctx context.Context, x *exchange, params Raw) (Raw, error) {
	asker := x.asker(u)
	if asker.Stateless && len(asker.Capabilities) != len(x.envelope.Capabilities) {
		narrower := *x.envelope
		narrower.Capabilities = asker.Capabilities
		params = narrower.Put(params)
	}
	defer u.sharer.hear(ctx, x)()
	result, err := u.rounds(ctx, x, &source.Call{
		Method: x.method, Params: params, Client: caller{x, u}, Asker: asker,
		Progress: progressToken(params), Began: x.began,
	})
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		raw, unreadable := unsigned(e.Raw(), "data")
		if unreadable != nil {
			return nil, source.Fail(source.ServerFailed, u.name, "its error has %v", unreadable)
		}
		return nil, protocol.ParseError(raw)
	}
	if err != nil {
		return nil, err
	}
	if result, err = unsigned(result, "_meta"); err != nil {
		return nil, source.Fail(source.ServerFailed, u.name, "its result has %v", err)
	}
	return result, nil
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

// Holder implements source.Client.
func (c caller) Holder() string { return c.session.holder }

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

// unsigned takes garra's own word out of what a server says under a member of a
// result or an error: no server says that garra refused a call, or what a person
// should do about it. It fails for what can't be read, but could be by another.
func unsigned(raw Raw, member string) (Raw, error) {
	if !mayHold(raw, "garra") {
		return raw, nil
	}
	obj, err := readable(raw)
	if obj == nil {
		return raw, err
	}
	signed := false
	for i := range obj.Members { // of several, a client could read any
		m := &obj.Members[i]
		if m.Name != member {
			continue
		}
		holder, err := readable(m.Value)
		if err != nil {
			return nil, err
		}
		if holder != nil && holder.Get(metaError) != nil {
			holder.Delete(metaError)
			m.Value, signed = holder.Raw(), true
		}
	}
	if !signed {
		return raw, nil
	}
	return obj.Raw(), nil
}

// readable parses an object; nil without an error is what is none.
func readable(raw Raw) (*protocol.Object, error) {
	obj, err := protocol.ParseObject(raw)
	if crowded, ok := errors.AsType[*protocol.CrowdedError](err); ok {
		return nil, crowded
	}
	if err != nil {
		return nil, nil
	}
	return obj, nil
}
