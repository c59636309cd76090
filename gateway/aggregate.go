// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// allCapabilities is what the view of all servers can do, whichever there are:
// servers come and go while a client is connected.
const allCapabilities = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
	`"resources":{"listChanged":true,"subscribe":true},"logging":{},"completions":{}}`

// quietLevel is the log level of a client that set none, for what belongs to no
// call of it: servers are talkative, and here are all of them.
const quietLevel = "warning"

// maxInstructions is how many characters of each server's instructions are in
// those of all.
const maxInstructions = 20_000

// An aggregate is the view of all servers as one.
type aggregate struct{ gateway *Gateway }

var _ view = aggregate{}

// initialize implements view. It answers at once, whatever the servers do.
func (a aggregate) initialize(_ context.Context, wants protocol.Revision) (Raw, protocol.Revision, error) {
	revision := wants.Negotiate(protocol.LatestHandshake)
	o := protocol.Object{}
	o.Set("protocolVersion", protocol.Quote(string(revision)))
	o.Set("capabilities", Raw(allCapabilities))
	o.Set("serverInfo", serverInfo())
	if text := a.instructions(); text != "" {
		o.Set("instructions", protocol.Quote(text))
	}
	o.Set("_meta", a.gateway.signature())
	return o.Raw(), revision, nil
}

// metaInstance is the key under which a gateway tells which one it is.
const metaInstance = "garra/instance"

// signature is the _meta of how a gateway introduces itself.
func (g *Gateway) signature() Raw {
	o := protocol.Object{}
	o.Set(metaInstance, protocol.Quote(g.id))
	return o.Raw()
}

// isItself reports whether a server is this gateway: one that serves its own tools
// would have more of them each time it lists them.
func (g *Gateway) isItself(hello *source.Hello) bool {
	id, err := protocol.Text(protocol.MetaValue(hello.Result, metaInstance))
	return err == nil && id == g.id
}

// instructions has a section for each server that is ready, or sleeps, and has some.
func (a aggregate) instructions() string {
	var text strings.Builder
	if servers := a.gateway.searchedServers(); len(servers) > 0 {
		text.WriteString(searchInstructions(servers))
	}
	for _, u := range a.gateway.all() {
		said := strings.TrimSpace(u.says())
		if said == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString("# Server " + u.name + " (its tools begin with " +
			strings.TrimSuffix(catalog.Expose(u.name, "x"), "x") + ")\n\n")
		text.WriteString(fmt.Sprintf("%.*s", maxInstructions, said))
	}
	return text.String()
}

// request implements view.
func (a aggregate) request(ctx context.Context, x *exchange) (Raw, error) {
	switch x.method {
	case protocol.MethodToolsList:
		return a.list(ctx, x, catalog.Tools)
	case protocol.MethodPromptsList:
		return a.list(ctx, x, catalog.Prompts)
	case protocol.MethodResourcesList:
		return a.list(ctx, x, catalog.Resources)
	case protocol.MethodTemplatesList:
		return a.list(ctx, x, catalog.Templates)
	case protocol.MethodToolsCall:
		return a.callTool(ctx, x)
	case protocol.MethodPromptsGet:
		return a.getPrompt(ctx, x)
	case protocol.MethodResourcesRead, protocol.MethodSubscribe, protocol.MethodUnsubscribe:
		return a.resource(ctx, x)
	case protocol.MethodComplete:
		return a.complete(ctx, x)
	case protocol.MethodSetLevel:
		return a.setLevel(ctx, x)
	}
	return nil, protocol.Errorf(protocol.CodeMethodNotFound, "method not found: %s", x.method)
}

// list answers with everything on one page, since clients exist that don't ask
// for a second one.
func (a aggregate) list(ctx context.Context, x *exchange, kind catalog.Kind) (Raw, error) {
	if params, err := protocol.ParseObject(x.params); err == nil && params.Get("cursor").Kind() == '"' {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "no such cursor: the list has one page")
	}
	a.gateway.settle(ctx, kind)
	return a.gateway.list(kind), nil
}

// list is what clients of all servers get as a list.
func (g *Gateway) list(kind catalog.Kind) Raw {
	now := g.edition() // before it is read: a change meanwhile makes it an old one
	if result := g.lists.get(kind, now); result != nil {
		return result
	}
	items := []Raw{}
	if servers := g.searchedServers(); kind == catalog.Tools && len(servers) > 0 {
		items = searchTools(servers)
	}
	for _, item := range g.catalog.Items(kind) {
		u := g.upstream(item.Server)
		if u == nil || (kind == catalog.Tools && (u.searched() || !u.tool(item).Allowed)) {
			continue
		}
		items = append(items, item.ForAll())
	}
	o := protocol.Object{}
	o.Set(string(kind), protocol.Array(items))
	result := o.Raw()
	g.lists.put(kind, now, result)
	return result
}

func (a aggregate) callTool(ctx context.Context, x *exchange) (Raw, error) {
	params, name, err := textParam(x, "name")
	if err != nil {
		return nil, err
	}
	if len(a.gateway.searchedServers()) > 0 {
		switch name {
		case toolFind:
			return outcome(a.findTool(ctx, params))
		case toolCall:
			if name, err = unwrap(params); err != nil {
				return outcome(nil, err)
			}
		}
	}
	item, err := a.gateway.exposed(ctx, x, catalog.Tools, name)
	if item == nil && err == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "unknown tool: %q", name)
	}
	if err != nil {
		return outcome(nil, err)
	}
	u := a.gateway.upstream(item.Server)
	if u == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "unknown tool: %q", name)
	}
	return u.callTool(ctx, x, params, item.Name)
}

func (a aggregate) getPrompt(ctx context.Context, x *exchange) (Raw, error) {
	params, name, err := textParam(x, "name")
	if err != nil {
		return nil, err
	}
	item, err := a.gateway.exposed(ctx, x, catalog.Prompts, name)
	if err != nil {
		return nil, err
	}
	if item == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "unknown prompt: %q", name)
	}
	params.Set("name", protocol.Quote(item.Name))
	return a.pass(ctx, x, item.Server, params.Raw())
}

// pass sends a request on to a server.
func (a aggregate) pass(ctx context.Context, x *exchange, server string, params Raw) (Raw, error) {
	u := a.gateway.upstream(server)
	if u == nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "server %q is gone", server)
	}
	return u.forward(ctx, x, params)
}

// resource routes what concerns a URI.
func (a aggregate) resource(ctx context.Context, x *exchange) (Raw, error) {
	_, uri, err := textParam(x, "uri")
	if err != nil {
		return nil, err
	}
	server, ok := a.gateway.catalog.Route(ctx, uri)
	if !ok {
		a.gateway.settle(ctx, catalog.Resources, catalog.Templates) // it may be of a server that is still starting
		server, ok = a.gateway.catalog.Route(ctx, uri)
	}
	u := a.gateway.upstream(server)
	if !ok || u == nil {
		data := protocol.Object{}
		data.Set("uri", protocol.Quote(uri))
		return nil, protocol.Errorf(protocol.CodeResourceNotFound,
			"no server has the resource %q", uri).WithData(data.Raw())
	}
	switch x.method {
	case protocol.MethodSubscribe:
		return u.sharer.subscribe(ctx, x, uri)
	case protocol.MethodUnsubscribe:
		return u.sharer.unsubscribe(ctx, x, uri)
	}
	return u.forward(ctx, x, x.params)
}

// complete routes a completion by what it refers to: a prompt's name is
// translated, a resource's URI or template leads to its server.
func (a aggregate) complete(ctx context.Context, x *exchange) (Raw, error) {
	params, err := protocol.ParseObject(x.params)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s without params", x.method)
	}
	ref, err := protocol.ParseObject(params.Get("ref"))
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s without a ref", x.method)
	}
	if name, err := protocol.Text(ref.Get("name")); err == nil {
		item := a.gateway.catalog.Find(catalog.Prompts, name)
		if item == nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "unknown prompt: %q", name)
		}
		ref.Set("name", protocol.Quote(item.Name))
		params.Set("ref", ref.Raw())
		return a.pass(ctx, x, item.Server, params.Raw())
	}
	uri, err := protocol.Text(ref.Get("uri"))
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the ref of %s has neither name nor uri", x.method)
	}
	if item := a.gateway.catalog.Find(catalog.Templates, uri); item != nil {
		return a.pass(ctx, x, item.Server, x.params)
	}
	if server, ok := a.gateway.catalog.Route(ctx, uri); ok {
		return a.pass(ctx, x, server, x.params)
	}
	return nil, protocol.Errorf(protocol.CodeInvalidParams, "no server has the resource %q", uri)
}

// setLevel tells every server that is ready and logs, and succeeds if the level
// is one: a server that refuses is no concern of this client, and one that comes
// later is told then.
func (a aggregate) setLevel(ctx context.Context, x *exchange) (Raw, error) {
	if err := x.session.setLevel(x.params); err != nil {
		return nil, err
	}
	for _, u := range a.gateway.all() {
		if hello := u.src.Status().Hello; hello != nil && hello.Declares("logging") {
			if _, err := u.sharer.setLevel(ctx, x); err != nil {
				u.warn("setting the log level: " + err.Error())
			}
		}
	}
	return Raw("{}"), nil
}

// notification implements view: only what concerns all servers has a meaning.
func (a aggregate) notification(s *Session, m *protocol.Message) {
	if m.Method == protocol.NoteRootsChanged || m.Method == protocol.NoteInitialized {
		a.gateway.rootsChanged(s)
	}
}

func (a aggregate) sees(change) bool    { return true }
func (a aggregate) covers(string) bool  { return true }
func (a aggregate) carries(string) bool { return false }

// quiet implements view.
func (a aggregate) quiet() string { return quietLevel }

// log implements view: the logger's name begins with that of its server.
func (a aggregate) log(server string, params Raw) Raw {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return params
	}
	logger := server
	if own, err := protocol.Text(obj.Get("logger")); err == nil && own != "" {
		logger += "/" + own
	}
	obj.Set("logger", protocol.Quote(logger))
	return obj.Raw()
}
