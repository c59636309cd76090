// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/protocol"
)

// announceAfter is how long changes are collected before clients hear of them.
const announceAfter = 50 * time.Millisecond

// A change says that the items of a kind of a server may have changed.
type change struct {
	server string
	kind   catalog.Kind
}

// An announcer collects changes for a moment and then hands them on together.
// It is safe for concurrent use.
type announcer struct {
	tell func([]change)

	mu      sync.Mutex // guards all below
	pending map[change]bool
	timer   *time.Timer
	stopped bool
}

func newAnnouncer(tell func([]change)) *announcer {
	return &announcer{tell: tell, pending: make(map[change]bool)}
}

// add notes a change; a template counts as a resource, since clients are told
// of both in one notification.
func (a *announcer) add(server string, kind catalog.Kind) {
	if kind == catalog.Templates {
		kind = catalog.Resources
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	if len(a.pending) == 0 {
		a.timer = time.AfterFunc(announceAfter, a.flush)
	}
	a.pending[change{server, kind}] = true
}

func (a *announcer) flush() {
	a.mu.Lock()
	changes := make([]change, 0, len(a.pending))
	for c := range a.pending {
		changes = append(changes, c)
	}
	clear(a.pending)
	a.mu.Unlock()
	a.tell(changes)
}

func (a *announcer) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
}

// announce tells every session what it sees of the changes, each kind once.
func (g *Gateway) announce(changes []change) {
	for _, s := range g.allSessions() {
		told := make(map[string]bool)
		for _, c := range changes {
			method := changedNote(c.kind)
			if !told[method] && s.view.sees(c) {
				told[method] = true
				s.tell(method, nil)
			}
		}
	}
}

// changedNote is the notification that tells of a change.
func changedNote(kind catalog.Kind) string {
	switch kind {
	case catalog.Prompts:
		return protocol.NotePromptsChanged
	case catalog.Resources, catalog.Templates:
		return protocol.NoteResourcesChanged
	case catalog.Tools:
	}
	return protocol.NoteToolsChanged
}
