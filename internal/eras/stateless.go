// SPDX-License-Identifier: Apache-2.0

package eras

import (
	"context"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// DiscoverParams are the params of server/discover.
func DiscoverParams() Raw { return envelopeOf(source.Asker{}).Put(nil) }

// ReadDiscovery reads a server's answer to server/discover. It fails with a
// *source.Failure for one that names no revision that garra speaks.
func ReadDiscovery(server string, result Raw) (*source.Hello, error) {
	obj, err := protocol.ParseObject(result)
	if err != nil || !speaks(obj) {
		return nil, source.Fail(source.ServerFailed, server,
			"its answer to server/discover names no revision that garra speaks: %.300s", result)
	}
	hello := &source.Hello{
		Result: result, Revision: protocol.LatestStateless, Capabilities: obj.Get("capabilities"),
	}
	hello.Instructions, _ = protocol.Text(obj.Get("instructions")) // absent is empty
	return hello, nil
}

// speaks reports whether an answer to server/discover names a revision of the
// stateless era that garra speaks.
func speaks(discovery *protocol.Object) bool {
	return names(discovery.Get("supportedVersions"))
}

// OffersRetry reports whether a server that refuses the revision of a request
// names one that garra speaks (MCP 2026-07-28, "Transports",
// UnsupportedProtocolVersionError).
func OffersRetry(e *protocol.Error) bool {
	if e.Code != protocol.CodeUnsupportedRevision {
		return false
	}
	obj, err := protocol.ParseObject(e.Raw())
	if err != nil {
		return false
	}
	data, err := protocol.ParseObject(obj.Get("data"))
	return err == nil && names(data.Get("supported"))
}

// names reports whether a list has a revision of the stateless era that garra
// speaks.
func names(list Raw) bool {
	versions, err := protocol.Elements(list)
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

// Addressed writes the params of a request of either era for a server of either.
func Addressed(params Raw, asker source.Asker, stateless bool) Raw {
	switch {
	case stateless && !asker.Stateless:
		return envelopeOf(asker).Put(params)
	case !stateless && asker.Stateless:
		return protocol.Open(params)
	}
	return params
}

// Answer answers a request of the handshake era that the stateless one doesn't
// have; done is false for any other, which is for the server. Safe for a nil Ear,
// whose server has a handshake.
func (e *Ear) Answer(ctx context.Context, c *source.Call) (result Raw, done bool, err error) {
	if e == nil {
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
		if err := e.Subscribe(ctx, uri); err != nil {
			return nil, true, err
		}
		return Raw("{}"), true, nil
	}
	return nil, false, nil
}
