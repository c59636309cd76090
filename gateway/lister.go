// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/garraia/garra/catalog"
	"github.com/garraia/garra/source"
)

const (
	listDebounce = 100 * time.Millisecond // servers announce changes in bursts
	listLimit    = 5 * time.Minute        // for all pages
	listRetry    = 30 * time.Second       // after a list that did not come
	staleAfter   = time.Second            // a list may be read again because of an unknown name
)

// A lister keeps one list of a server up to date, in a goroutine of its own: a
// list that does not come holds up no other. It is safe for concurrent use.
type lister struct {
	upstream *upstream
	kind     catalog.Kind
	wake     chan struct{} // holds one token: the list is to be read

	mu     sync.Mutex // guards all below
	loud   bool       // tell clients even if nothing changed: the server came back
	begun  uint64     // counts readings
	ended  uint64     // the last reading that is over
	readOf uint64     // generation of the source that was read, or tried to be
	readAt time.Time
}

func newLister(u *upstream, kind catalog.Kind) *lister {
	return &lister{upstream: u, kind: kind, wake: make(chan struct{}, 1)}
}

// refresh has the list read, soon; loud announces it to clients in any case.
func (l *lister) refresh(loud bool) {
	l.mu.Lock()
	l.loud = l.loud || loud
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default: // it will be
	}
}

// run reads the list whenever it is asked to, until the upstream ends.
func (l *lister) run() {
	var retry <-chan time.Time
	for {
		select {
		case <-l.wake:
		case <-retry:
		case <-l.upstream.life.Done():
			return
		}
		retry = nil
		if failed := l.read(); failed {
			retry = time.After(listRetry)
		}
		select {
		case <-time.After(listDebounce):
		case <-l.upstream.life.Done():
			return
		}
	}
}

// read reads the list now. It reports whether that is worth another try.
func (l *lister) read() (failed bool) {
	u := l.upstream
	l.mu.Lock()
	l.begun++
	loud := l.loud
	l.loud = false
	l.mu.Unlock()
	hello := u.src.Status().Hello
	defer l.over(hello)
	if hello == nil {
		return false // it went again; the next time it is ready comes with a refresh
	}
	ctx, cancel := context.WithTimeout(u.life, listLimit)
	defer cancel()
	list, err := catalog.Unread(u.name, l.kind,
		"the server is this gateway itself, and what it lists is left out; take the entry out"), error(nil)
	if !u.gateway.isItself(hello) {
		list, err = catalog.Read(ctx, u.name, u.src, l.kind)
	}
	if err != nil {
		if source.AsFailure(err, source.ServerFailed, u.name).Code != source.ServerStopped && u.life.Err() == nil {
			u.warn(fmt.Sprintf("its %s could not be listed: %v", l.kind, err))
		}
		return u.life.Err() == nil && ctx.Err() != nil
	}
	changed, taken := u.take(list, hello)
	if taken {
		u.report(list)
		if changed || (loud && hello.Declares(string(l.kind))) {
			u.gateway.news.add(u.name, l.kind)
		}
	}
	return list.Failed
}

// over is the end of a reading.
func (l *lister) over(hello *source.Hello) {
	l.mu.Lock()
	l.ended, l.readAt = l.begun, time.Now()
	if hello != nil {
		l.readOf = hello.Generation
	}
	l.mu.Unlock()
	if hello != nil {
		l.upstream.keep(hello)
	}
	l.upstream.gateway.changed.fire()
}

// tried reports whether the list of that process was read, or can't be now.
func (l *lister) tried(generation uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.readOf == generation
}

// again waits for a reading that begins after now, unless the last one is fresh.
func (l *lister) again(ctx context.Context) {
	l.mu.Lock()
	wanted := l.begun + 1
	fresh := l.begun == l.ended && time.Since(l.readAt) < staleAfter
	l.mu.Unlock()
	if fresh {
		return
	}
	l.refresh(false)
	for {
		changed := l.upstream.gateway.changed.wait()
		l.mu.Lock()
		over := l.ended >= wanted
		l.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-l.upstream.life.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// take makes a list known to clients, unless the process that gave it is gone.
// One that failed doesn't take the place of one that is there.
func (u *upstream) take(list *catalog.List, of *source.Hello) (changed, taken bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.src.Status().Hello
	if u.life.Err() != nil || now == nil || now.Generation != of.Generation {
		return false, false
	}
	if list.Failed && u.gateway.catalog.List(u.name, list.Kind) != nil {
		return false, true
	}
	return u.gateway.catalog.Set(list), true
}

// report warns, once each, of what is left out and of rules that match nothing.
func (u *upstream) report(l *catalog.List) {
	for _, problem := range l.Problems {
		u.warn(fmt.Sprintf("%.300s", problem))
	}
	for _, item := range l.Items {
		if item.Problem != "" {
			u.warn(fmt.Sprintf("%s %.100q is left out: %s", l.Kind.Singular(), item.Name, item.Problem))
		}
	}
	if l.Kind == catalog.Tools {
		for _, rule := range u.unknownTools(l) {
			u.warn(fmt.Sprintf("%s (%s:%d) is %q, but no tool of the server bears that name",
				rule.Field, rule.File, rule.Line, rule.Pattern))
		}
	}
	u.gateway.reportClashes(l.Kind)
}

// reportClashes warns of items that clients of all servers don't see, since
// another server has the same: once for each two servers.
func (g *Gateway) reportClashes(kind catalog.Kind) {
	type pair struct{ hidden, shown string }
	seen := make(map[pair]bool)
	for _, clash := range g.catalog.Clashes(kind) {
		p := pair{clash.Hidden.Server, clash.Shown.Server}
		u := g.upstream(p.hidden)
		if seen[p] || u == nil {
			continue
		}
		seen[p] = true
		u.warn(fmt.Sprintf("server %q has the %s %.100q too, and clients of all servers get that one; "+
			"what both have is to be had from %s at /mcp/%s alone",
			p.shown, kind.Singular(), clash.Hidden.Name, p.hidden, p.hidden))
	}
}
