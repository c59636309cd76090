// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/policy"
	"github.com/garraia/garra/source"
)

const (
	listDebounce    = 100 * time.Millisecond // servers announce changes in bursts
	discoverTimeout = 5 * time.Minute        // for all lists of one server
	staleAfter      = time.Second            // a listing may be asked for again because of an unknown tool
)

// An upstream is one server as the gateway knows it. Its goroutine keeps the
// listing up to date. It is safe for concurrent use.
type upstream struct {
	name    string
	gateway *Gateway
	src     source.Source
	came    time.Time
	current atomic.Pointer[ruled]

	wake   chan struct{} // holds one token: the listing is to be read again
	life   context.Context
	end    context.CancelFunc
	sharer *sharer

	mu       sync.Mutex // guards all below
	loud     bool       // tell clients even if nothing changed: the server came back
	readOf   uint64     // generation of the source whose listing was read, or tried to be
	readAt   time.Time
	reported map[string]bool // warnings that were given already
}

// ruled is an entry with its rules.
type ruled struct {
	entry *mcpconfig.Server
	rules *policy.Rules
}

func newUpstream(g *Gateway, entry *mcpconfig.Server, rules *policy.Rules, src source.Source) *upstream {
	u := &upstream{
		name: entry.Name, gateway: g, src: src, came: time.Now(),
		wake: make(chan struct{}, 1), reported: make(map[string]bool),
	}
	u.sharer = newSharer(u)
	u.life, u.end = context.WithCancel(context.Background())
	u.current.Store(&ruled{entry, rules})
	return u
}

// adopt takes a new text of the entry and reports whether the tools that
// clients see may have changed by it.
func (u *upstream) adopt(entry *mcpconfig.Server, rules *policy.Rules) bool {
	last := u.current.Swap(&ruled{entry, rules})
	return last.entry.Digest() != entry.Digest()
}

func (u *upstream) close() {
	u.end()
	u.forget()
}

// forget takes the server's items out of what clients see.
func (u *upstream) forget() {
	for _, kind := range u.gateway.catalog.Set(u.name, nil) {
		u.gateway.news.add(u.name, kind)
	}
	u.gateway.changed.fire()
}

// refresh has the listing read again, soon; loud announces it to clients in any
// case.
func (u *upstream) refresh(loud bool) {
	u.mu.Lock()
	u.loud = u.loud || loud
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default: // it will be
	}
}

// run reads the listing whenever it is asked to, until close.
func (u *upstream) run() {
	for {
		select {
		case <-u.wake:
		case <-u.life.Done():
			return
		}
		u.discover(u.life)
		select {
		case <-time.After(listDebounce):
		case <-u.life.Done():
			return
		}
	}
}

// discover reads the listing now.
func (u *upstream) discover(ctx context.Context) {
	defer u.gateway.changed.fire()
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	u.mu.Lock()
	loud := u.loud
	u.loud = false
	u.mu.Unlock()

	hello := u.src.Status().Hello
	if hello == nil {
		return // it went again; the next time it is ready comes with a refresh
	}
	listing, err := catalog.Discover(ctx, u.name, u.src)
	if err != nil {
		u.read(hello)
		if source.AsFailure(err, source.ServerFailed, u.name).Code != source.ServerStopped && ctx.Err() == nil {
			u.warn("its tools could not be listed: " + err.Error())
		}
		return
	}
	changed := u.gateway.catalog.Set(u.name, listing)
	u.read(hello)
	u.report(listing)
	u.gateway.reportClashes()
	u.sharer.restore(hello)
	if loud {
		changed = declared(hello)
	}
	for _, kind := range changed {
		u.gateway.news.add(u.name, kind)
	}
}

// read notes that the listing of this process was read, or can't be.
func (u *upstream) read(hello *source.Hello) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.readOf, u.readAt = hello.Generation, time.Now()
}

// declared are the kinds that the server has.
func declared(hello *source.Hello) (kinds []catalog.Kind) {
	for _, kind := range []catalog.Kind{catalog.Tools, catalog.Prompts, catalog.Resources} {
		if hello.Declares(string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// report warns, once each, of what is left out and of rules that match nothing.
func (u *upstream) report(l *catalog.Listing) {
	for _, problem := range l.Problems {
		u.warn(problem)
	}
	for _, kind := range catalog.Kinds() {
		for _, item := range l.Items[kind] {
			if item.Problem != "" {
				u.warn(fmt.Sprintf("%s %q is left out: %s", kind.Singular(), item.Name, item.Problem))
			}
		}
	}
	for _, rule := range u.unknownTools(l) {
		u.warn(fmt.Sprintf("%s (%s:%d) is %q, but no tool of the server bears that name",
			rule.Field, rule.File, rule.Line, rule.Pattern))
	}
}

// reportClashes warns of items that clients of all servers don't see, since
// another server has the same: once for each two servers.
func (g *Gateway) reportClashes() {
	type pair struct{ hidden, shown string }
	seen := make(map[pair]bool)
	for _, clash := range g.catalog.Clashes() {
		p := pair{clash.Hidden.Server, clash.Shown.Server}
		u := g.upstream(p.hidden)
		if seen[p] || u == nil {
			continue
		}
		seen[p] = true
		u.warn(fmt.Sprintf("server %q has the %s %q too, and clients of all servers get that one; "+
			"what both have is to be had from %s at /mcp/%s alone",
			p.shown, clash.Hidden.Kind.Singular(), clash.Hidden.Name, p.hidden, p.hidden))
	}
}

func (u *upstream) warn(message string) {
	u.mu.Lock()
	again := u.reported[message]
	u.reported[message] = true
	u.mu.Unlock()
	if !again {
		u.gateway.warn(u.name, message)
	}
}

// settled reports whether it is known what the server offers, or that it can't
// be known now.
func (u *upstream) settled() bool {
	status := u.src.Status()
	if status.State != source.Ready {
		return status.Tried || !status.State.Listed()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.readOf == status.Hello.Generation
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
// the listing makes it be read again, unless that was done just now.
func (u *upstream) findTool(ctx context.Context, name string) (*catalog.Item, error) {
	if _, err := u.src.Hello(ctx); err != nil {
		return nil, err
	}
	if item := u.listedTool(name); item != nil {
		return item, nil
	}
	u.mu.Lock()
	fresh := time.Since(u.readAt) < staleAfter
	u.mu.Unlock()
	if !fresh || u.gateway.catalog.Listing(u.name) == nil {
		u.discover(ctx)
	}
	return u.listedTool(name), nil
}

func (u *upstream) listedTool(name string) *catalog.Item {
	listing := u.gateway.catalog.Listing(u.name)
	if listing == nil {
		return nil
	}
	return listing.Tool(name)
}
