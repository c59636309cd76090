// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// ClientCapabilities is what garra declares to every server, whichever clients
// there are: a shared process is initialized once. What a client at hand can't
// do is refused when the server asks for it. Roots are not among them, since
// servers let the roots of a client replace the folders of their configuration;
// an entry with forwardRoots adds them.
const ClientCapabilities = `{"sampling":{"context":{},"tools":{}},"elicitation":{"form":{},"url":{}}}`

// initializeParams is what garra says to a server first.
func initializeParams(entry *mcpconfig.Server) Raw {
	caps, _ := protocol.ParseObject(Raw(ClientCapabilities)) // a constant
	if entry.ForwardRoots {
		caps.Set("roots", Raw(`{"listChanged":true}`))
	}
	params := protocol.Object{}
	params.Set("protocolVersion", protocol.Quote(string(protocol.LatestHandshake)))
	params.Set("capabilities", caps.Raw())
	params.Set("clientInfo", clientInfo())
	return params.Raw()
}

// clientInfo is how garra introduces itself to servers.
func clientInfo() Raw {
	info := protocol.Object{}
	info.Set("name", protocol.Quote("garra"))
	info.Set("version", protocol.Quote(version.String()))
	return info.Raw()
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
	if !hello.Revision.Known() {
		return nil, source.Fail(source.ServerFailed, server,
			"it speaks revision %.40q of MCP, which garra doesn't know", revision)
	}
	hello.Instructions, _ = protocol.Text(obj.Get("instructions")) // absent is empty
	return hello, nil
}
