// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/internal/sse"
)

// eventBacklog is how many events a slow client may be behind.
const eventBacklog = 256

// An Event is one thing that happened, as the event stream shows it.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"` // "state", "warning", "noise", "config"
	Server  string    `json:"server,omitempty"`
	Holder  string    `json:"holder,omitempty"` // whose process it is, where each client has one
	From    string    `json:"from,omitempty"`
	State   string    `json:"state,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Message string    `json:"message,omitempty"`
	Reason  string    `json:"reason,omitempty"` // "memory" when a server ended for want of it
}

// Events hands what happens to everybody who follows. Safe for concurrent use.
type Events struct {
	mu        sync.Mutex // guards followers
	followers map[chan Event]bool
}

// NewEvents returns Events without followers.
func NewEvents() *Events { return &Events{followers: make(map[chan Event]bool)} }

// Publish hands an event on. It doesn't block: a follower that is too far behind
// is cut off, and sees that it was.
func (e *Events) Publish(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ch := range e.followers {
		select {
		case ch <- event:
		default:
			delete(e.followers, ch)
			close(ch)
		}
	}
}

// subscribe returns a channel of the events from now on, which is closed when
// its reader is too slow, and how to leave.
func (e *Events) subscribe() (<-chan Event, func()) {
	ch := make(chan Event, eventBacklog)
	e.mu.Lock()
	e.followers[ch] = true
	e.mu.Unlock()
	return ch, func() {
		e.mu.Lock()
		delete(e.followers, ch)
		e.mu.Unlock()
	}
}

// wantsEvents reports whether a client asks for server-sent events.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// beginEvents starts a stream of events. A client that is gone already shows at
// the first one.
func beginEvents(w http.ResponseWriter) *eventStream {
	out, err := sse.Begin(w)
	return &eventStream{out, err}
}

// An eventStream writes values as events.
type eventStream struct {
	*sse.Writer
	err error // of its beginning
}

// send writes one event.
func (o *eventStream) send(kind, id string, value any) error {
	data, err := json.Marshal(value)
	if err = errors.Join(o.err, err); err != nil {
		return err
	}
	return o.Event(kind, id, data)
}

// await waits for more, writing a comment now and then. It returns an error
// when the client is gone.
func (o *eventStream) await(ctx context.Context, more <-chan struct{}) error {
	quiet := time.NewTicker(sse.KeepAlive)
	defer quiet.Stop()
	for {
		select {
		case <-more:
			return nil
		case <-quiet.C:
			if err := o.Comment(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
