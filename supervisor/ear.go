// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	listenForever = 100 * 365 * 24 * time.Hour // subscriptions/listen has no answer until its end
	ackTimeout    = 10 * time.Second           // for a server to acknowledge it
)

// An ear hears what a server of the stateless era says outside of requests, over
// one subscriptions/listen request at a time (MCP 2026-07-28, "Subscriptions").
// It is safe for concurrent use.
type ear struct {
	link *link
	caps Raw // of the server

	turn chan struct{}         // holds one token: who changes what is heard
	acks chan *protocol.Object // what the server agreed to, of the newest request
	stop context.CancelFunc    // of the request that runs, nil when none does; for who has the turn

	mu   sync.Mutex // guards uris
	uris map[string]bool
}

func newEar(l *link, caps Raw) *ear {
	e := &ear{
		link: l, caps: caps, turn: make(chan struct{}, 1), acks: make(chan *protocol.Object, 1),
		uris: make(map[string]bool),
	}
	e.turn <- struct{}{}
	return e
}

// open begins to hear what the server announces of itself.
func (e *ear) open(ctx Context) error {
	if err := e.takeTurn(ctx); err != nil {
		return err
	}
	defer e.endTurn()
	_, err := e.listen(ctx)
	return err
}

func (e *ear) takeTurn(ctx Context) error {
	select {
	case <-e.turn:
		return nil
	case <-ctx.Done():
		return cancelled(ctx, e.link.server)
	}
}

func (e *ear) endTurn() { e.turn <- struct{}{} }

// watch adds a resource to what is heard, or takes it out. It fails when the
// server doesn't agree.
func (e *ear) watch(ctx Context, uri string, wanted bool) error {
	if err := e.takeTurn(ctx); err != nil {
		return err
	}
	defer e.endTurn()
	e.mu.Lock()
	had := e.uris[uri]
	if wanted {
		e.uris[uri] = true
	} else {
		delete(e.uris, uri)
	}
	e.mu.Unlock()
	if had == wanted {
		return nil
	}
	agreed, err := e.listen(ctx)
	if err == nil && wanted && !agrees(agreed, uri) {
		err = protocol.Errorf(protocol.CodeInvalidParams, "the server does not announce changes of %.200q", uri)
	}
	if err != nil && wanted {
		e.mu.Lock()
		delete(e.uris, uri)
		e.mu.Unlock()
	}
	return err
}

// agrees reports whether a server acknowledged a resource.
func agrees(agreed *protocol.Object, uri string) bool {
	uris, err := protocol.Elements(agreed.Get("resourceSubscriptions"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(uris, func(raw Raw) bool {
		text, err := protocol.Text(raw)
		return err == nil && text == uri
	})
}

// wishes is what is to be heard now; nil when that is nothing.
func (e *ear) wishes() *protocol.Object {
	hello := source.Hello{Capabilities: e.caps}
	wants := &protocol.Object{}
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if hello.DeclaresChanges(kind) {
			wants.Set(kind+"ListChanged", Raw("true"))
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.uris) > 0 {
		var list []Raw
		for _, uri := range slices.Sorted(maps.Keys(e.uris)) {
			list = append(list, protocol.Quote(uri))
		}
		wants.Set("resourceSubscriptions", protocol.Array(list))
	}
	if len(wants.Members) == 0 {
		return nil
	}
	return wants
}

// listen sends a request for all that is to be heard, and ends the one before once
// the server has acknowledged it: nothing is missed between.
func (e *ear) listen(ctx Context) (agreed *protocol.Object, err error) {
	wants := e.wishes()
	before := e.stop
	e.stop = nil
	if before != nil {
		defer before()
	}
	if wants == nil {
		return &protocol.Object{}, nil
	}
	params := protocol.Object{}
	params.Set("notifications", wants.Raw())
	life, stop := context.WithCancel(e.link.life)
	e.stop = stop
	select {
	case <-e.acks: // of a request that was given up
	default:
	}
	ended := make(chan error, 1)
	go func() { // ends with stop, or with the link
		_, err := e.link.call(life, &source.Call{Method: protocol.MethodListen, Params: params.Raw()},
			budget{timeout: listenForever, began: time.Now()})
		ended <- err
	}()
	limit, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	select {
	case agreed = <-e.acks:
		return agreed, nil
	case err = <-ended:
		return &protocol.Object{}, err
	case <-limit.Done():
		return &protocol.Object{}, source.Fail(source.CallTimeout, e.link.server,
			"it acknowledged no subscription in time")
	}
}

// acknowledged takes what a server says first on a listen request.
func (e *ear) acknowledged(params Raw) {
	obj, err := protocol.ParseObject(params)
	if err != nil {
		return
	}
	agreed, err := protocol.ParseObject(obj.Get("notifications"))
	if err != nil {
		agreed = &protocol.Object{}
	}
	select {
	case e.acks <- agreed:
	default: // nobody asked
	}
}
