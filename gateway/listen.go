// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"

	"github.com/garraia/garra/protocol"
)

// maxListened bounds the resources of one subscriptions/listen.
const maxListened = 1000

// A listening is a subscriptions/listen request while it runs (MCP 2026-07-28,
// "Subscriptions"): what the client asked to hear goes out under its id. It
// implements outlet.
type listening struct {
	id  protocol.ID
	out outlet

	mu    sync.Mutex      // guards wants
	wants map[string]bool // notifications, by method; nil until the client was told
}

// push implements outlet: nothing else goes this way.
func (l *listening) push(m *protocol.Message) bool {
	l.mu.Lock()
	wanted := l.wants[m.Method]
	l.mu.Unlock()
	if !wanted || !m.IsNotification() {
		return false
	}
	return l.out.push(protocol.NewNotification(m.Method, l.tagged(m.Params)))
}

func (l *listening) tagged(params Raw) Raw {
	return protocol.WithMeta(params, protocol.MetaSubscriptionID, l.id.Raw())
}

// The members of "notifications" that stand for a notification each.
func listChanges() map[string]string {
	return map[string]string{
		"toolsListChanged":     protocol.NoteToolsChanged,
		"promptsListChanged":   protocol.NotePromptsChanged,
		"resourcesListChanged": protocol.NoteResourcesChanged,
	}
}

// listen answers subscriptions/listen: first with what of it can be had, then with
// that, until the client goes.
func (s *Session) listen(ctx context.Context, x *exchange) (Raw, error) {
	params, err := protocol.ParseObject(x.params)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s without params", x.method)
	}
	wanted, err := protocol.ParseObject(params.Get("notifications"))
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "%s without notifications", x.method)
	}
	l := &listening{id: x.id, out: x.out}
	listener := s.gateway.newSession(s.view, s.principal, l)
	listener.greeted = true
	listener.holder = s.holder
	s.gateway.keep(listener)
	defer listener.close()

	wants, agreed := make(map[string]bool), protocol.Object{}
	for member, method := range listChanges() {
		if string(wanted.Get(member)) == "true" && s.view.announces(method) {
			wants[method] = true
			agreed.Set(member, Raw("true"))
		}
	}
	if uris := listener.subscribeAll(ctx, wanted.Get("resourceSubscriptions")); len(uris) > 0 {
		wants[protocol.NoteResourceUpdated] = true
		agreed.Set("resourceSubscriptions", protocol.Array(uris))
	}
	ack := protocol.Object{}
	ack.Set("notifications", agreed.Raw())
	l.mu.Lock() // news that come now follow the acknowledgement
	x.out.push(protocol.NewNotification(protocol.NoteAcknowledged, l.tagged(ack.Raw())))
	l.wants = wants
	l.mu.Unlock()
	if len(wants) > 0 {
		defer s.pause()()
		select {
		case <-ctx.Done():
		case <-listener.life.Done():
		}
	}
	return protocol.Stamp(l.tagged(nil), s.view.identity()), nil
}

// subscribeAll subscribes to resources, and returns those that it could.
func (s *Session) subscribeAll(ctx context.Context, list Raw) (agreed []Raw) {
	uris, err := protocol.Elements(list)
	if err != nil {
		return nil // none are wanted
	}
	uris = uris[:min(len(uris), maxListened)] // what isn't agreed to isn't acknowledged
	for _, uri := range uris {
		params := protocol.Object{}
		params.Set("uri", uri)
		m := protocol.NewRequest(protocol.ID{}, protocol.MethodSubscribe, params.Raw())
		if _, err := s.view.request(ctx, newExchange(ctx, s, m, s.own)); err == nil {
			agreed = append(agreed, uri)
		}
	}
	return agreed
}

// announces implements view.
func (a aggregate) announces(string) bool { return true }

// announces implements view.
func (v single) announces(method string) bool {
	u := v.gateway.upstream(v.server)
	if u == nil {
		return false
	}
	hello := u.src.Status().Hello
	return hello != nil && hello.DeclaresChanges(string(kindOf(method)))
}
