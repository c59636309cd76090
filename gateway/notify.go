// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/protocol"
)

// Notified takes what a server says outside of any client's call. It doesn't
// block.
func (g *Gateway) Notified(server, method string, params Raw) {
	u := g.upstream(server)
	if u == nil {
		return
	}
	switch method {
	case protocol.NoteToolsChanged, protocol.NotePromptsChanged, protocol.NoteResourcesChanged:
		u.listChanged(method)
	case protocol.NoteResourceUpdated:
		u.resourceUpdated(params)
	case protocol.NoteMessage:
		for _, s := range g.allSessions() {
			if s.view.covers(server) && s.wantsLog(s.view.quiet(), params) {
				s.tell(method, s.view.log(server, params))
			}
		}
	default:
		for _, s := range g.allSessions() {
			if s.view.carries(server) {
				s.tell(method, params)
			}
		}
	}
}

// listChanged reads the list again, and tells the clients of this server alone
// in any case: it said so, even if the list turns out to be the same.
func (u *upstream) listChanged(method string) {
	hello := u.src.Status().Hello
	kind := kindOf(method)
	u.listers[kind].refresh(false)
	if kind == catalog.Resources {
		u.listers[catalog.Templates].refresh(false)
	}
	if hello == nil || !hello.DeclaresChanges(string(kind)) {
		return
	}
	u.gateway.news.add(u.name, kind)
}

func kindOf(method string) catalog.Kind {
	switch method {
	case protocol.NotePromptsChanged:
		return catalog.Prompts
	case protocol.NoteResourcesChanged:
		return catalog.Resources
	}
	return catalog.Tools
}

// resourceUpdated tells the sessions that subscribed.
func (u *upstream) resourceUpdated(params Raw) {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return
	}
	uri, err := protocol.Text(obj.Get("uri"))
	if err != nil {
		return
	}
	for _, s := range u.sharer.updated(uri) {
		s.tell(protocol.NoteResourceUpdated, params)
	}
}

// Asked answers what a server asks while no client's call runs. Only roots can
// be answered then, and only where the entry forwards them and there is one
// client that has some: an answer of several would mix their folders.
func (g *Gateway) Asked(ctx context.Context, server, method string, params Raw) (Raw, error) {
	u := g.upstream(server)
	if u == nil || method != protocol.MethodRootsList || !u.forwardsRoots() {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound,
			"no client's call is running that %s could belong to", method)
	}
	var with []*Session
	for _, s := range g.allSessions() {
		if s.can("roots") && s.view.covers(server) {
			with = append(with, s)
		}
	}
	if len(with) != 1 {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound,
			"%d clients have roots; garra forwards those of a single one", len(with))
	}
	return with[0].ask(ctx, &question{
		from: u, out: with[0].own, method: method, params: params, relation: with[0].life,
	})
}

// rootsChanged tells the servers that a client has other roots now, or came
// with some.
func (g *Gateway) rootsChanged() {
	for _, u := range g.all() {
		if u.forwardsRoots() {
			u.src.Notify(protocol.NoteRootsChanged, nil)
		}
	}
}
