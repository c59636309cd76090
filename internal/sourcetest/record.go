// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// A Record is what servers told. It is safe for concurrent use.
type Record struct {
	mu     sync.Mutex // guards what follows
	events []source.Event
	notes  []string // "server method params"
	stderr []string // "server: line"
}

// Hooks are those that make the record.
func (r *Record) Hooks() source.Hooks {
	return source.Hooks{Event: r.Told, Notification: r.notified, Stderr: r.wrote}
}

// Told adds an event.
func (r *Record) Told(e source.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *Record) notified(from source.Origin, method string, params protocol.Raw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s", from.Server, method, params))
}

func (r *Record) wrote(server, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stderr = append(r.stderr, server+": "+line)
}

// Events returns all events so far.
func (r *Record) Events() []source.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Heard returns the notifications that concern no client.
func (r *Record) Heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// Stderr returns the lines on standard error.
func (r *Record) Stderr() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stderr)
}

// Saw returns the first event with that text in its message, or "".
func (r *Record) Saw(text string) string {
	for _, e := range r.Events() {
		if strings.Contains(e.Message, text) {
			return e.Message
		}
	}
	return ""
}

// Count returns how many events have this text in their message.
func (r *Record) Count(text string) int {
	n := 0
	for _, e := range r.Events() {
		if strings.Contains(e.Message, text) {
			n++
		}
	}
	return n
}

// States returns the states that a server went through.
func (r *Record) States(name string) []source.State {
	var states []source.State
	for _, e := range r.Events() {
		if e.Server == name && e.Kind == source.EventState {
			states = append(states, e.State)
		}
	}
	return states
}
