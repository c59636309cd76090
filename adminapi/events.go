// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	keepAlive    = 15 * time.Second // between comments on a silent stream
	writeTimeout = 30 * time.Second // for a client to take an event
	eventBacklog = 256              // events that a slow client may be behind
)

// An Event is one thing that happened, as the event stream shows it.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"` // "state", "warning", "noise", "config"
	Server  string    `json:"server,omitempty"`
	From    string    `json:"from,omitempty"`
	State   string    `json:"state,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Message string    `json:"message,omitempty"`
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

// An eventWriter writes server-sent events (HTML standard, section 9.2).
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// beginEvents starts a stream of events.
func beginEvents(w http.ResponseWriter) *eventWriter {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	out := &eventWriter{w, http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	out.comment() // an error shows again at the first event
	return out
}

// send writes one event.
func (o *eventWriter) send(kind, id string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	head := "event: " + kind + "\n"
	if id != "" {
		head += "id: " + id + "\n"
	}
	return o.write(fmt.Sprintf("%sdata: %s\n\n", head, data))
}

func (o *eventWriter) comment() error { return o.write(": garra\n\n") }

func (o *eventWriter) write(text string) error {
	// A writer without deadlines, as in tests, just has none.
	_ = o.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := o.w.Write([]byte(text)); err != nil {
		return err
	}
	return o.control.Flush()
}

// await waits for more, writing a comment now and then. It returns an error
// when the client is gone.
func (o *eventWriter) await(ctx context.Context, more <-chan struct{}) error {
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		select {
		case <-more:
			return nil
		case <-quiet.C:
			if err := o.comment(); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
