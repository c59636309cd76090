// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// quietWait is how long garra waits for servers without a word.
const quietWait = 2 * time.Second

// A waiting says on standard error, once, which servers a command waits for. It is
// safe for concurrent use.
type waiting struct {
	mu    sync.Mutex // guards all below, and the line that is written
	names map[string]bool
	over  bool
	timer *time.Timer
}

// waitFor begins to wait for servers; stop ends it.
func (g *globals) waitFor(names ...string) *waiting {
	w := &waiting{names: make(map[string]bool)}
	for _, name := range names {
		w.names[name] = true
	}
	w.timer = time.AfterFunc(g.quiet, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.over && len(w.names) > 0 {
			fmt.Fprintln(g.err, "garra: waiting for "+printable(strings.Join(slices.Sorted(maps.Keys(w.names)), ", ")))
		}
	})
	return w
}

// add has another server be waited for.
func (w *waiting) add(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = true
}

// got has a server be waited for no longer.
func (w *waiting) got(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.names, name)
}

// left are the servers that are waited for, by name.
func (w *waiting) left() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.names))
}

// stop ends the waiting; nothing is said after it returned.
func (w *waiting) stop() {
	w.timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}
