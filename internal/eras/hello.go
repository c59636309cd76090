// SPDX-License-Identifier: Apache-2.0

package eras

import (
	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// ClientCapabilities is what garra declares to every server, whichever clients
// there are: what is shared is initialized once. What a client at hand can't do
// is refused when the server asks for it. Roots are not among them, since servers
// let the roots of a client replace the folders of their configuration; an entry
// with forwardRoots adds them.
const ClientCapabilities = `{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}`

// Capabilities are what garra declares in a handshake, with roots where the
// server is to know them.
func Capabilities(roots bool) Raw {
	if !roots {
		return Raw(ClientCapabilities)
	}
	caps, _ := protocol.ParseObject(Raw(ClientCapabilities)) // a constant
	caps.Set("roots", Raw(`{"listChanged":true}`))
	return caps.Raw()
}

// InitializeParams are the params of initialize.
func InitializeParams(roots bool) Raw {
	params := protocol.Object{}
	params.Set("protocolVersion", protocol.Quote(string(protocol.LatestHandshake)))
	params.Set("capabilities", Capabilities(roots))
	params.Set("clientInfo", clientInfo())
	return params.Raw()
}

// clientInfo is how garra introduces itself.
func clientInfo() Raw {
	info := protocol.Object{}
	info.Set("name", protocol.Quote("garra"))
	info.Set("version", protocol.Quote(version.String()))
	return info.Raw()
}

// ReadHello reads a server's answer to initialize. It fails with a
// *source.Failure for one that is none, or of a revision with a handshake that
// garra doesn't know.
func ReadHello(server string, result Raw) (*source.Hello, error) {
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
	if !hello.Revision.Known() {
		return nil, source.Fail(source.ServerFailed, server,
			"it speaks revision %.40q of MCP, which garra doesn't know", revision)
	}
	hello.Instructions, _ = protocol.Text(obj.Get("instructions")) // absent is empty
	return hello, nil
}
