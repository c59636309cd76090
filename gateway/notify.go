// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// Notified takes what a server says outside of any client's call. It doesn't
// block.
func (g *Gateway) Notified(from source.Origin, method string, params Raw) {
	u := g.upstream(from.Server)
	if u == nil {
		return
	}
	switch method {
	case protocol.NoteToolsChanged, protocol.NotePromptsChanged, protocol.NoteResourcesChanged:
		u.listChanged(from, method)
	case protocol.NoteResourceUpdated:
		u.resourceUpdated(from, params)
	case protocol.NoteMessage:
		severe := severityOf(params) // once, however many sessions there are
		for _, s := range g.allSessions() {
			if s.view.covers(u.name) && u.concerns(from, s) && s.wantsLog(s.view.quiet(), severe) {
				s.tell(method, s.view.log(u.name, params))
			}
		}
	default:
		for _, s := range g.allSessions() {
			if s.view.carries(u.name) && u.concerns(from, s) {
				s.tell(method, params)
			}
		}
	}
}

// listChanged reads the list again, and tells the clients of this server alone
// in any case: it said so, even if the list turns out to be the same. A client's
// own process says it to that client, where that sees the server alone: what all
// clients see is the list of what they share.
func (u *upstream) listChanged(from source.Origin, method string) {
	if from.Holder != "" {
		for _, s := range u.gateway.allSessions() {
			if s.view.carries(u.name) && u.concerns(from, s) {
				s.tell(method, nil)
			}
		}
		return
	}
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
func (u *upstream) resourceUpdated(from source.Origin, params Raw) {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return
	}
	uri, err := protocol.Text(obj.Get("uri"))
	if err != nil {
		return
	}
	for _, s := range u.sharer.updated(uri) {
		if u.concerns(from, s) {
			s.tell(protocol.NoteResourceUpdated, params)
		}
	}
}

// Asked answers what a server asks while no client's call runs. A client's own
// process asks that client. One that clients share can only ask for roots, where
// its entry forwards them and there is one client that has some: an answer of
// several would mix their folders.
func (g *Gateway) Asked(ctx context.Context, from source.Origin, method string, params Raw) (Raw, error) {
	u := g.upstream(from.Server)
	roots := method == protocol.MethodRootsList
	if u == nil || (from.Holder == "" && !roots) || (roots && !u.forwardsRoots()) {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound,
			"no client's call is running that %s could belong to", method)
	}
	capability, _ := askable(method) // none is refused by the client
	var with []*Session
	for _, s := range g.allSessions() {
		if s.view.covers(u.name) && u.concerns(from, s) && s.can(capability) {
			with = append(with, s)
		}
	}
	if len(with) != 1 {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound,
			"%d clients can be asked %s; garra asks a single one", len(with), method)
	}
	return with[0].ask(ctx, &question{
		from: u, out: with[0].own, method: method, params: params, relation: with[0].life,
	})
}

// rootsChanged tells the servers that a client has other roots now, or came
// with some.
func (g *Gateway) rootsChanged(s *Session) {
	for _, u := range g.all() {
		if u.forwardsRoots() {
			u.tell(s, protocol.NoteRootsChanged, nil)
		}
	}
}
