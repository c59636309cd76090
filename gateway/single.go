// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A single is the view of one server as it is: its own names, results,
// capabilities and instructions. Only tools that may not be called are missing.
type single struct {
	gateway *Gateway
	server  string
}

var _ view = single{}

// upstream returns the server, which may have gone from the configuration.
func (v single) upstream() (*upstream, error) {
	u := v.gateway.upstream(v.server)
	if u == nil {
		return nil, source.Fail(source.ServerUnknown, v.server, "the server is no longer in the configuration")
	}
	return u, nil
}

// initialize implements view. It waits for the server, and answers what that
// answered, in the older of the revisions that the two sides speak.
func (v single) initialize(ctx context.Context, wants protocol.Revision) (Raw, protocol.Revision, error) {
	u, err := v.upstream()
	if err != nil {
		return nil, "", err
	}
	limit, cancel := context.WithTimeout(ctx, u.current.Load().entry.Timeout)
	defer cancel()
	hello, err := u.src.Hello(limit)
	if err != nil {
		return nil, "", err
	}
	if hello.Revision.Stateless() {
		return greeting(hello, wants.Negotiate(protocol.LatestHandshake))
	}
	result, err := protocol.ParseObject(hello.Result)
	if err != nil {
		return nil, "", err
	}
	revision := wants.Negotiate(hello.Revision)
	result.Set("protocolVersion", protocol.Quote(string(revision)))
	return result.Raw(), revision, nil
}

// greeting is an answer to initialize from a server that takes none.
func greeting(hello *source.Hello, revision protocol.Revision) (Raw, protocol.Revision, error) {
	o := protocol.Object{}
	o.Set("protocolVersion", protocol.Quote(string(revision)))
	o.Set("capabilities", hello.Capabilities)
	if hello.Capabilities == nil {
		o.Set("capabilities", Raw("{}"))
	}
	info := hello.ServerInfo()
	if info == nil { // which an answer to initialize must have
		info = serverInfo()
	}
	o.Set("serverInfo", info)
	if hello.Instructions != "" {
		o.Set("instructions", protocol.Quote(hello.Instructions))
	}
	return o.Raw(), revision, nil
}

// request implements view.
func (v single) request(ctx context.Context, x *exchange) (Raw, error) {
	u, err := v.upstream()
	if err != nil {
		return nil, err
	}
	switch x.method {
	case protocol.MethodToolsList:
		return v.listTools(ctx, u, x)
	case protocol.MethodToolsCall:
		params, name, err := textParam(x, "name")
		if err != nil {
			return nil, err
		}
		return u.callTool(ctx, x, params, name)
	case protocol.MethodSubscribe, protocol.MethodUnsubscribe:
		_, uri, err := textParam(x, "uri")
		if err != nil {
			return nil, err
		}
		if x.method == protocol.MethodSubscribe {
			return u.sharer.subscribe(ctx, x, uri)
		}
		return u.sharer.unsubscribe(ctx, x, uri)
	case protocol.MethodSetLevel:
		if x.session.setLevel(x.params) != nil {
			return u.forward(ctx, x, x.params) // the server says what is wrong
		}
		return u.sharer.setLevel(ctx, x)
	}
	return u.forward(ctx, x, x.params)
}

// listTools passes the server's page on, without the tools that may not be
// called. A page from which nothing is missing stays as the server wrote it.
func (v single) listTools(ctx context.Context, u *upstream, x *exchange) (Raw, error) {
	page, err := u.forward(ctx, x, x.params)
	if err != nil {
		return nil, err
	}
	result, err := protocol.ParseObject(page)
	if err != nil {
		return page, nil // whatever it is, the client gets what the server said
	}
	tools, err := protocol.Elements(result.Get(string(catalog.Tools)))
	if crowded, ok := errors.AsType[*protocol.CrowdedError](err); ok {
		return nil, protocol.Errorf(protocol.CodeInternal, "the list of server %q has %v", u.name, crowded)
	}
	if err != nil {
		return page, nil // as above
	}
	kept := tools[:0:0]
	for _, raw := range tools {
		if u.tool(catalog.NewTool(u.name, raw)).Allowed {
			kept = append(kept, raw)
		}
	}
	if len(kept) == len(tools) {
		return page, nil
	}
	result.Set(string(catalog.Tools), protocol.Array(kept))
	return result.Raw(), nil
}

// notification implements view. What garra answers itself stays here, and roots
// are forwarded only where the entry says so.
func (v single) notification(s *Session, m *protocol.Message) {
	u, err := v.upstream()
	if err != nil {
		return
	}
	switch m.Method {
	case protocol.NoteInitialized, protocol.NoteRootsChanged:
		if u.forwardsRoots() {
			u.tell(s, protocol.NoteRootsChanged, nil)
		}
	default:
		u.tell(s, m.Method, m.Params)
	}
}

// sees implements view: of this server, and only what it declared to announce.
func (v single) sees(c change) bool {
	if !v.covers(c.server) {
		return false
	}
	u := v.gateway.upstream(v.server)
	if u == nil {
		return false
	}
	hello := u.src.Status().Hello
	return hello == nil || hello.DeclaresChanges(string(c.kind))
}

func (v single) covers(server string) bool  { return server == v.server }
func (v single) carries(server string) bool { return server == v.server }

// quiet implements view: what a server says of itself is wanted.
func (v single) quiet() string { return "" }

// log implements view.
func (v single) log(_ string, params Raw) Raw { return params }
