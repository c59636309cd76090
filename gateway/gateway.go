// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/policy"
	"github.com/garraia/garra/source"
)

// Options are what a Gateway needs.
type Options struct {
	// Warn is told what a person should know of a server, such as a tool that is
	// left out. It must not block.
	Warn func(server, message string)
	// Memory keeps what servers offer that are started only when they are needed; nil
	// keeps it as long as the Gateway lasts.
	Memory *catalog.Memory
}

// A Gateway serves the sources of one configuration to any number of clients.
// It is safe for concurrent use.
type Gateway struct {
	id      string // of this one, by which it knows itself as a server
	options Options
	catalog *catalog.Catalog
	news    *announcer
	changed *signal // anything that a waiting list could depend on
	parleys parleys
	lists   listCache
	index   indexCache
	rules   atomic.Uint64 // counts changes of the configuration
	parting atomic.Int32  // a parting
	idle    *signal       // a session has answered something

	mu        sync.RWMutex         // guards all below
	upstreams map[string]*upstream // by server
	sessions  map[string]*Session  // by id
	listWait  time.Duration
	searched  []string          // servers whose tools are found by asking for them, sorted
	tokens    map[string]string // by holder: principals of clients without a session that have called
}

// New returns a Gateway without servers.
func New(options Options) *Gateway {
	g := &Gateway{
		id: rand.Text(), options: options, catalog: catalog.New(), changed: newSignal(), idle: newSignal(),
		upstreams: make(map[string]*upstream), sessions: make(map[string]*Session),
		tokens: make(map[string]string),
	}
	g.news = newAnnouncer(g.announce)
	return g
}

// Apply takes a configuration and the sources that were made from it; find
// returns nil for a server that has none. Servers that are no longer there are
// forgotten; of the others only what changed is touched.
func (g *Gateway) Apply(config *mcpconfig.Config, find func(name string) source.Source) {
	g.mu.Lock()
	g.listWait = config.Settings.ListWait
	wanted := make(map[string]bool)
	var fresh, gone []*upstream
	g.searched = nil
	for _, entry := range config.Entries() {
		src := find(entry.Name)
		rules, err := policy.Compile(entry)
		if src == nil || err != nil { // the check of the configuration refuses such rules
			continue
		}
		wanted[entry.Name] = true
		if entry.Tools == mcpconfig.ToolsSearch {
			g.searched = append(g.searched, entry.Name)
		}
		if u := g.upstreams[entry.Name]; u != nil && u.src == src {
			if u.adopt(entry, rules) {
				g.news.add(entry.Name, catalog.Tools)
			}
			continue
		} else if u != nil {
			gone = append(gone, u)
		}
		u := newUpstream(g, entry, rules, src)
		g.upstreams[entry.Name] = u
		fresh = append(fresh, u)
	}
	slices.Sort(g.searched)
	for name, u := range g.upstreams {
		if !wanted[name] {
			gone = append(gone, u)
			delete(g.upstreams, name)
		}
	}
	g.mu.Unlock()
	g.rules.Add(1)
	for _, u := range gone {
		u.close()
	}
	for _, u := range fresh {
		u.run()
		g.StateChanged(source.Origin{Server: u.name})
	}
	g.changed.fire()
}

// Close ends all sessions and forgets all servers.
func (g *Gateway) Close() {
	g.EndSessions(func(string) bool { return true })
	g.mu.Lock()
	upstreams := g.upstreams
	g.upstreams = make(map[string]*upstream)
	g.mu.Unlock()
	for _, u := range upstreams {
		u.close()
	}
	g.news.stop()
}

// upstream returns the server of that name, nil when there is none.
func (g *Gateway) upstream(name string) *upstream {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.upstreams[name]
}

// all returns the upstreams in the order of their names.
func (g *Gateway) all() []*upstream {
	g.mu.RLock()
	defer g.mu.RUnlock()
	list := make([]*upstream, 0, len(g.upstreams))
	for _, name := range slices.Sorted(maps.Keys(g.upstreams)) {
		list = append(list, g.upstreams[name])
	}
	return list
}

// Has reports whether there is a server of that name.
func (g *Gateway) Has(name string) bool { return g.upstream(name) != nil }

// Waiting returns the servers that have not been tried once yet: of all others
// it is known what they offer, or that it can't be known now.
func (g *Gateway) Waiting() (names []string) {
	for _, u := range g.unsettled(catalog.Kinds()) {
		names = append(names, u.name)
	}
	return names
}

func (g *Gateway) unsettled(kinds []catalog.Kind) (list []*upstream) {
	for _, u := range g.all() {
		if !u.settled(kinds) {
			list = append(list, u)
		}
	}
	return list
}

// settle waits until every server has been asked once for its lists of some
// kinds, but for none longer than the configuration says, counted from when the
// server came.
func (g *Gateway) settle(ctx context.Context, kinds ...catalog.Kind) {
	for _, u := range g.all() {
		u.learn()
	}
	for {
		changed := g.changed.wait()
		left := g.patience(g.unsettled(kinds))
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// patience is how long a list still waits for servers.
func (g *Gateway) patience(waiting []*upstream) (left time.Duration) {
	g.mu.RLock()
	limit := g.listWait
	g.mu.RUnlock()
	for _, u := range waiting {
		left = max(left, limit-time.Since(u.awaited()))
	}
	return left
}

// StateChanged is told that a source is in another state. What counts is the state
// of the one that has the name now: the end of its predecessor may come later.
// What clients see is that of the one that they share.
func (g *Gateway) StateChanged(of source.Origin) {
	defer g.changed.fire()
	u := g.upstream(of.Server)
	if u == nil {
		return
	}
	if of.Holder != "" {
		go u.sharer.restore(of.Holder) // ends with the server's answers, or the upstream
		return
	}
	switch status := u.src.Status(); {
	case status.State == source.Ready:
		u.back()
	case status.Asleep:
		u.slept.Store(true)
	case !status.Listed():
		u.forget()
	}
}

func (g *Gateway) warn(server, message string) {
	if g.options.Warn != nil {
		g.options.Warn(server, message)
	}
}
