// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/policy"
	"github.com/garraia/garra/source"
)

// maxWarnings bounds what is said of one process of a server: the server chooses
// the names in it.
const maxWarnings = 100

// An upstream is one server as the gateway knows it. It is safe for concurrent
// use.
type upstream struct {
	name    string
	gateway *Gateway
	src     source.Source
	current atomic.Pointer[ruled]

	life    context.Context
	end     context.CancelFunc
	sharer  *sharer
	listers map[catalog.Kind]*lister

	slept    atomic.Bool // since it was ready
	learning atomic.Bool // it is being started so that what it offers is known

	mu           sync.Mutex      // guards all below, and is held while lists come and go
	reported     map[string]bool // warnings that were given already
	came         time.Time       // or was started to learn what it offers
	instructions string          // that it had last
}

// ruled is an entry with its rules.
type ruled struct {
	entry *mcpconfig.Server
	rules *policy.Rules
}

func newUpstream(g *Gateway, entry *mcpconfig.Server, rules *policy.Rules, src source.Source) *upstream {
	u := &upstream{
		name: entry.Name, gateway: g, src: src, came: time.Now(),
		listers: make(map[catalog.Kind]*lister), reported: make(map[string]bool),
	}
	u.sharer = newSharer(u)
	for _, kind := range catalog.Kinds() {
		u.listers[kind] = newLister(u, kind)
	}
	u.life, u.end = context.WithCancel(context.Background())
	u.current.Store(&ruled{entry, rules})
	u.recall()
	return u
}

// adopt takes a new text of the entry and reports whether the tools that
// clients see may have changed by it.
func (u *upstream) adopt(entry *mcpconfig.Server, rules *policy.Rules) bool {
	last := u.current.Swap(&ruled{entry, rules})
	return last.entry.Digest() != entry.Digest() || last.entry.Tools != entry.Tools
}

func (u *upstream) close() {
	u.end()
	u.forget()
}

// run keeps the lists up to date.
func (u *upstream) run() {
	for _, l := range u.listers {
		go l.run() // ends with close
	}
}

// forget takes the server's items out of what clients see.
func (u *upstream) forget() {
	u.mu.Lock()
	had := u.gateway.catalog.Forget(u.name)
	u.mu.Unlock()
	for _, kind := range had {
		u.gateway.news.add(u.name, kind)
	}
	u.gateway.changed.fire()
}

// back is told that the server is ready, for the first time or again.
func (u *upstream) back() {
	u.mu.Lock()
	clear(u.reported)
	if hello := u.src.Status().Hello; hello != nil {
		u.instructions = hello.Instructions
	}
	u.mu.Unlock()
	// Clients don't see that it slept, unless it has something else to offer now.
	loud := !u.slept.Swap(false) || !u.remembered()
	for _, l := range u.listers {
		l.refresh(loud)
	}
	go u.sharer.restore("") // ends with the server's answers, or the upstream
	if u.forker() == nil {
		return
	}
	for _, holder := range u.sharer.subscribers() {
		// A restart ended what its clients hold. Who wants to hear of something has it
		// again, and is restored when that is ready.
		_, _ = u.serving(holder) // why there is none, the next call says
	}
}

func (u *upstream) warn(message string) {
	u.mu.Lock()
	told := u.reported[message] || len(u.reported) >= maxWarnings
	if !told {
		u.reported[message] = true
	}
	last := !told && len(u.reported) == maxWarnings
	u.mu.Unlock()
	if last {
		message += " (more is not told until the server is started again)"
	}
	if !told {
		u.gateway.warn(u.name, message)
	}
}

// settled reports whether it is known what the server offers of some kinds, or
// that it can't be known now.
func (u *upstream) settled(kinds []catalog.Kind) bool {
	status := u.src.Status()
	switch {
	case status.Asleep:
		return !u.learning.Load()
	case status.State != source.Ready:
		return status.Tried || !status.Listed()
	}
	for _, kind := range kinds {
		if !u.listers[kind].tried(status.Hello.Generation) {
			return false
		}
	}
	return true
}

// tool returns what is known of a tool and whether it may be called. It is the
// one question that listing and calling both ask.
func (u *upstream) tool(item *catalog.Item) policy.Decision {
	if item.Problem != "" {
		return policy.Decision{Reason: item.Problem}
	}
	return u.current.Load().rules.Tool(item.Name)
}

// findTool returns a tool by the server's own name for it. A name that isn't in
// the list makes that be read again, unless that was done just now.
func (u *upstream) findTool(ctx context.Context, x *exchange, name string) (*catalog.Item, error) {
	if item := u.listed(name); item != nil && (u.forker() != nil || u.src.Status().State == source.Ready) {
		return item, nil
	}
	ctx, cancel := u.within(ctx, x)
	defer cancel()
	if _, err := u.src.Hello(ctx); err != nil {
		return nil, err
	}
	if item := u.listed(name); item != nil {
		return item, nil
	}
	u.listers[catalog.Tools].again(ctx)
	return u.listed(name), nil
}

func (u *upstream) listed(name string) *catalog.Item {
	return u.gateway.catalog.List(u.name, catalog.Tools).Find(name)
}
