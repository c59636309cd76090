// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"

	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// initialize asks the server to introduce itself. Why it doesn't is a mishap.
func (l *link) initialize(ctx Context, params Raw, b budget) (Raw, *mishap) {
	r := l.exchange(ctx, &source.Call{Method: protocol.MethodInitialize, Params: params}, b)
	switch e, refused := errors.AsType[*protocol.Error](r.err); {
	case r.err == nil:
		return r.result, nil
	case refused:
		text := l.scrub(fmt.Sprintf("the server refused initialize: %.500s", e))
		f := source.Fail(source.ServerFailed, l.server, "%s", text)
		return nil, &mishap{failure: f, lasting: true}
	case l.life.Err() != nil:
		return nil, l.asMishap()
	case r.mishap != nil:
		return nil, r.mishap
	}
	return nil, &mishap{failure: source.AsFailure(r.err, source.ServerFailed, l.server)}
}

// initializeParams is what garra says to a server first.
func initializeParams(entry *mcpconfig.Server, capabilities Raw) Raw {
	caps, err := protocol.ParseObject(capabilities)
	if err == nil && entry.ForwardRoots {
		caps.Set("roots", Raw(`{"listChanged":true}`))
		capabilities = caps.Raw()
	}
	info := protocol.Object{}
	info.Set("name", protocol.Quote("garra"))
	info.Set("version", protocol.Quote(version.String()))
	params := protocol.Object{}
	params.Set("protocolVersion", protocol.Quote(string(protocol.LatestHandshake)))
	params.Set("capabilities", capabilities)
	params.Set("clientInfo", info.Raw())
	return params.Raw()
}

// readHello reads a server's answer to initialize.
func readHello(server string, result Raw) (*source.Hello, *source.Failure) {
	obj, err := protocol.ParseObject(result)
	if err != nil {
		return nil, source.Fail(source.ServerFailed, server, "its answer to initialize is %v", err)
	}
	revision, err := protocol.Text(obj.Get("protocolVersion"))
	if err != nil {
		return nil, source.Fail(source.ServerFailed, server, "its answer to initialize names no protocolVersion")
	}
	hello := &source.Hello{
		Result: result, Revision: protocol.Revision(revision), Capabilities: obj.Get("capabilities"),
	}
	if !hello.Revision.Known() || hello.Revision > protocol.LatestHandshake {
		return nil, source.Fail(source.ServerFailed, server,
			"it speaks revision %.40q of MCP, which garra doesn't know", revision)
	}
	hello.Instructions, _ = protocol.Text(obj.Get("instructions")) // absent is empty
	return hello, nil
}
