// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// meet learns what a new process offers, in the era that its entry names. Left to
// garra it is greeted first: servers that speak both eras lose nothing by it, and
// most speak no other. One that refuses the handshake is asked without one.
func (a *attendance) meet(ctx Context) (*source.Hello, error) {
	switch a.run.Entry.Era {
	case mcpconfig.EraLegacy:
		return a.initialize(ctx)
	case mcpconfig.EraModern:
		return a.discover(ctx)
	case mcpconfig.EraAuto:
	}
	hello, err := a.initialize(ctx)
	if !isRefusal(err) {
		return hello, err
	}
	if hello, failed := a.discover(ctx); failed == nil {
		return hello, nil
	}
	return nil, err
}

// isRefusal reports whether the server answered with an error.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*protocol.Error](err)
	return ok
}

// speaks reports whether an answer to server/discover names a revision of the
// stateless era that garra speaks.
func speaks(result Raw) bool {
	obj, err := protocol.ParseObject(result)
	if err != nil {
		return false
	}
	versions, err := protocol.Elements(obj.Get("supportedVersions"))
	if err != nil {
		return false
	}
	for _, v := range versions {
		if text, err := protocol.Text(v); err == nil && protocol.Revision(text) == protocol.LatestStateless {
			return true
		}
	}
	return false
}

// discover asks what the server offers, in the stateless era (MCP 2026-07-28,
// server/discover).
func (a *attendance) discover(ctx Context) (*source.Hello, error) {
	result, err := a.link.call(ctx, &source.Call{
		Method: protocol.MethodDiscover, Params: envelopeOf(source.Asker{}).Put(nil),
	}, a.patience())
	if err != nil {
		return nil, err
	}
	obj, err := protocol.ParseObject(result)
	if err != nil || !speaks(result) {
		return nil, source.Fail(source.ServerFailed, a.run.Entry.Name,
			"its answer to server/discover names no revision that garra speaks: %.300s", result)
	}
	hello := &source.Hello{
		Result: result, Revision: protocol.LatestStateless, Capabilities: obj.Get("capabilities"),
	}
	hello.Instructions, _ = protocol.Text(obj.Get("instructions")) // absent is empty
	ear := newEar(a.link)
	a.link.ear.Store(ear)
	ear.hearLists(hello.Capabilities)
	return hello, nil
}

// envelopeOf is the envelope for a client that speaks the handshake era, or for
// garra itself.
func envelopeOf(asker source.Asker) *protocol.Envelope {
	caps := asker.Capabilities
	if caps.Kind() != '{' {
		caps = Raw("{}")
	}
	return &protocol.Envelope{
		Revision: protocol.LatestStateless, Capabilities: caps, ClientInfo: clientInfo(), LogLevel: asker.LogLevel,
	}
}

// addressed writes the params of a request for the era of the link's server.
func (l *link) addressed(params Raw, asker source.Asker) Raw {
	switch stateless := l.ear.Load() != nil; {
	case stateless && !asker.Stateless:
		return envelopeOf(asker).Put(params)
	case !stateless && asker.Stateless:
		return protocol.Open(params)
	}
	return params
}

// own answers a request for a server of the stateless era that this era doesn't
// have; done is false for any other.
func (l *link) own(ctx Context, c *source.Call) (result Raw, done bool, err error) {
	ear := l.ear.Load()
	if ear == nil {
		return nil, false, nil
	}
	switch c.Method {
	case protocol.MethodSetLevel, protocol.MethodPing, protocol.MethodUnsubscribe:
		// A level goes with each request, and what nobody wants any more is dropped.
		return Raw("{}"), true, nil
	case protocol.MethodSubscribe:
		params, err := protocol.ParseObject(c.Params)
		if err != nil {
			return nil, true, protocol.Errorf(protocol.CodeInvalidParams, "%s without params", c.Method)
		}
		uri, err := protocol.Text(params.Get("uri"))
		if err != nil {
			return nil, true, protocol.Errorf(protocol.CodeInvalidParams, "%s without a uri", c.Method)
		}
		if err := ear.subscribe(ctx, uri); err != nil {
			return nil, true, err
		}
		return Raw("{}"), true, nil
	}
	return nil, false, nil
}
