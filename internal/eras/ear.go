// SPDX-License-Identifier: Apache-2.0

package eras

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

const (
	ackTimeout = 10 * time.Second // for a server to acknowledge it
	maxEars    = 1000             // resources of one server that are listened to
	minReopen  = time.Second      // before a subscription that ended is made again
	maxReopen  = time.Minute
)

// Forever is the time that subscriptions/listen has, which has no answer until its
// end.
const Forever = 100 * 365 * 24 * time.Hour

// A Link is the way to a server, as an Ear uses it. Its functions are safe for
// concurrent use.
type Link struct {
	Server string          // its name
	Life   context.Context // ends when the server can't be spoken to any more
	// Request sends a request of garra's own and waits for its answer for as long
	// as ctx does. An error that the server answered is a *protocol.Error.
	Request func(ctx context.Context, method string, params Raw) (Raw, error)
	// Trouble tells people of what the server didn't take.
	Trouble func(message string)
	// Told takes a notification that the server may have meant to send.
	Told func(m *protocol.Message)
}

// An Ear hears what a server of the stateless era says outside of requests, over
// subscriptions/listen (MCP 2026-07-28, "Subscriptions"): one request for its
// lists, and one for each resource. None is ended before the server is, since
// servers were seen that forget the others of a client with it; who wants to
// hear what is for the gateway to know. It is safe for concurrent use.
type Ear struct {
	link Link

	turn chan struct{}         // holds one token: who may wait for an acknowledgement
	acks chan *protocol.Object // what the server agreed to, of the request whose turn it is

	mu   sync.Mutex // guards uris
	uris map[string]bool
}

// NewEar returns an Ear that hears nothing yet.
func NewEar(l Link) *Ear {
	e := &Ear{
		link: l, turn: make(chan struct{}, 1), acks: make(chan *protocol.Object, 1), uris: make(map[string]bool),
	}
	e.turn <- struct{}{}
	return e
}

// HearLists hears of changes of the lists that the server announces, until the
// link ends.
func (e *Ear) HearLists(caps Raw) {
	hello := source.Hello{Capabilities: caps}
	wants := &protocol.Object{}
	var missed []string
	for _, of := range []struct{ kind, note string }{
		{"tools", protocol.NoteToolsChanged},
		{"prompts", protocol.NotePromptsChanged},
		{"resources", protocol.NoteResourcesChanged},
	} {
		if hello.DeclaresChanges(of.kind) {
			wants.Set(of.kind+"ListChanged", Raw("true"))
			missed = append(missed, of.note)
		}
	}
	if len(wants.Members) == 0 {
		return
	}
	go e.keep(wants, nil, func() { // ends with the link, or when the server refuses to be listened to
		for _, note := range missed {
			e.link.Told(protocol.NewNotification(note, nil))
		}
	})
}

// keep listens, again and again, until the link ends or the server refuses to be
// listened to. ended is of a request that is under way, nil when none is. What the
// server would have said between two requests is taken for said: caughtUp is called
// after each but the first.
func (e *Ear) keep(wants *protocol.Object, ended <-chan error, caughtUp func()) {
	wait := minReopen
	for first := ended == nil; ; first = false {
		began := time.Now()
		var err error
		if ended == nil {
			if _, ended, err = e.listen(e.link.Life, wants); err == nil && !first {
				caughtUp()
			}
		}
		if err == nil {
			err = <-ended
		}
		ended = nil
		if e.link.Life.Err() != nil {
			return
		}
		if refusal, ok := errors.AsType[*protocol.Error](err); ok {
			e.link.Trouble(fmt.Sprintf("changes are not heard of any more: %.300s", refusal))
			return
		}
		if time.Since(began) >= wait {
			wait = minReopen // it was heard for a while
		}
		select {
		case <-time.After(wait):
		case <-e.link.Life.Done():
			return
		}
		wait = min(2*wait, maxReopen)
	}
}

// Subscribe hears of changes of a resource from now on. It fails when the server
// doesn't agree.
func (e *Ear) Subscribe(ctx context.Context, uri string) error {
	e.mu.Lock()
	heard, full := e.uris[uri], len(e.uris) >= maxEars
	e.mu.Unlock()
	switch {
	case heard:
		return nil
	case full:
		return protocol.Errorf(protocol.CodeInternal, "%d resources of the server are listened to already", maxEars)
	}
	wants := &protocol.Object{}
	wants.Set("resourceSubscriptions", protocol.Array([]Raw{protocol.Quote(uri)}))
	agreed, ended, err := e.listen(ctx, wants)
	if err != nil {
		return err
	}
	if !agrees(agreed, uri) {
		return protocol.Errorf(protocol.CodeInvalidParams, "the server does not announce changes of %.200q", uri)
	}
	e.note(uri, true)
	go func() { // ends with the link, or when the server refuses
		updated := protocol.Object{}
		updated.Set("uri", protocol.Quote(uri))
		e.keep(wants, ended, func() {
			e.link.Told(protocol.NewNotification(protocol.NoteResourceUpdated, updated.Raw()))
		})
		e.note(uri, false)
	}()
	return nil
}

func (e *Ear) note(uri string, heard bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if heard {
		e.uris[uri] = true
	} else {
		delete(e.uris, uri)
	}
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

// listen sends one request and waits until the server acknowledges it. ended gets
// what becomes of it.
func (e *Ear) listen(
	ctx context.Context, wants *protocol.Object,
) (agreed *protocol.Object, ended <-chan error, err error) {
	select {
	case <-e.turn:
		defer func() { e.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, nil, source.Cancelled(ctx, e.link.Server)
	}
	select {
	case <-e.acks: // of a request that was given up
	default:
	}
	params := protocol.Object{}
	params.Set("notifications", wants.Raw())
	life, stop := context.WithCancel(e.link.Life)
	over := make(chan error, 1)
	go func() { // ends with the server's answer, with stop, or with the link
		defer stop()
		_, err := e.link.Request(life, protocol.MethodListen, params.Raw())
		over <- err
	}()
	limit, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	select {
	case agreed = <-e.acks:
		return agreed, over, nil
	case err = <-over:
		if err == nil {
			err = protocol.Errorf(protocol.CodeInvalidParams, "the server agreed to no subscription")
		}
		return nil, nil, err
	case <-limit.Done():
		stop()
		return nil, nil, source.Fail(source.CallTimeout, e.link.Server, "it acknowledged no subscription in time")
	}
}

// Hear takes a notification of the server. One that acknowledges a subscription is
// for the Ear alone, and done is true; of any other the params are returned
// without the name of garra's own subscription. Safe for a nil Ear.
func (e *Ear) Hear(method string, params Raw) (rest Raw, done bool) {
	switch {
	case e == nil:
		return params, method == protocol.NoteAcknowledged
	case method == protocol.NoteAcknowledged:
		e.acknowledged(params)
		return nil, true
	case !bytes.Contains(params, []byte(protocol.MetaSubscriptionID)):
		return params, false
	}
	if params = protocol.WithoutMeta(params, protocol.MetaSubscriptionID); string(params) == "{}" {
		return nil, false
	}
	return params, false
}

// acknowledged takes what a server says first on a listen request.
func (e *Ear) acknowledged(params Raw) {
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
