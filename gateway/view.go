// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/protocol"
)

// A view is what a session sees of the gateway: all servers, or one.
type view interface {
	// initialize answers the handshake of a client that wants a revision.
	initialize(ctx context.Context, wants protocol.Revision) (Raw, protocol.Revision, error)
	// request answers any other request.
	request(ctx context.Context, x *exchange) (Raw, error)
	// discover says what there is, to a client without a handshake.
	discover(ctx context.Context) (Raw, error)
	// identity is who answers, nil when that isn't known.
	identity() Raw
	// schema is the input schema of a tool, nil when there is none.
	schema(tool string) Raw
	// notification takes one of the client.
	notification(s *Session, m *protocol.Message)
	listener
}

// A listener says what of the servers' news a session hears.
type listener interface {
	// covers reports whether the server is visible here.
	covers(server string) bool
	// announces reports whether list changes of a kind, by notification, are
	// announced here.
	announces(method string) bool
	// sees reports whether a change of items is visible here.
	sees(c change) bool
	// carries reports whether notifications that garra doesn't know are passed on.
	carries(server string) bool
	// quiet is the level of log messages outside of its calls for a client that
	// set none; empty for all of them.
	quiet() string
	// log is a server's log message as it is shown here.
	log(server string, params Raw) Raw
}

// serverInfo is how garra introduces itself to clients of all servers.
func serverInfo() Raw {
	o := protocol.Object{}
	o.Set("name", protocol.Quote("garra"))
	o.Set("title", protocol.Quote("garra, an MCP gateway"))
	o.Set("version", protocol.Quote(version.String()))
	return o.Raw()
}

// textParam reads a member of a request's params that must be a string.
func textParam(x *exchange, name string) (*protocol.Object, string, error) {
	params, err := x.message.ParamsObject()
	if err != nil {
		return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "%s without params", x.method)
	}
	text, err := protocol.Text(params.Get(name))
	if err != nil {
		return nil, "", protocol.Errorf(protocol.CodeInvalidParams, "%s without a %s", x.method, name)
	}
	return params, text, nil
}
