// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
)

// maxRouted is the longest URI, in bytes, that is held against templates.
const maxRouted = 4096

// A Catalog holds the lists of all servers. It is safe for concurrent use.
type Catalog struct {
	mu      sync.RWMutex // guards all below
	kinds   map[Kind]*shelf
	version uint64 // counts changes
}

// A shelf holds what there is of one kind.
type shelf struct {
	lists   map[string]*List // by server
	byName  map[string]*Item // usable ones: by exposed name, URI or template
	clashes []Clash
}

// A Clash is two usable items that clients of all servers would ask for by the
// same name or URI: they get the first of them, by server name.
type Clash struct{ Shown, Hidden *Item }

// New returns an empty Catalog.
func New() *Catalog {
	c := &Catalog{kinds: make(map[Kind]*shelf)}
	for _, kind := range Kinds() {
		c.kinds[kind] = &shelf{lists: make(map[string]*List), byName: make(map[string]*Item)}
	}
	return c
}

// Set takes a list in, instead of the last one of its kind and server, and
// reports whether its items are others.
func (c *Catalog) Set(next *List) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.kinds[next.Kind]
	var last []*Item
	if l := s.lists[next.Server]; l != nil {
		last = l.Items
	}
	s.lists[next.Server] = next
	s.index()
	c.version++
	return !slices.EqualFunc(last, next.Items, func(x, y *Item) bool { return bytes.Equal(x.Raw, y.Raw) })
}

// Forget takes a server's lists out, and returns the kinds of which it had items.
func (c *Catalog) Forget(server string) (had []Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	for _, kind := range Kinds() {
		s := c.kinds[kind]
		if l := s.lists[server]; l != nil && len(l.Items) > 0 {
			had = append(had, kind)
		}
		delete(s.lists, server)
		s.index()
	}
	return had
}

// Version is another one after each change.
func (c *Catalog) Version() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.version
}

// index rebuilds the way from names to items. Where two servers have the same
// name or URI, the first by server name has it.
func (s *shelf) index() {
	s.clashes = nil
	s.byName = make(map[string]*Item)
	for _, server := range s.servers() {
		for _, item := range s.lists[server].Items {
			if item.Problem != "" {
				continue
			}
			if shown := s.byName[item.exposedKey()]; shown != nil {
				s.clashes = append(s.clashes, Clash{shown, item})
				continue
			}
			s.byName[item.exposedKey()] = item
		}
	}
}

// exposedKey is what clients of all servers ask for.
func (i *Item) exposedKey() string {
	if i.Exposed != "" {
		return i.Exposed
	}
	return i.Name
}

func (s *shelf) servers() []string { return slices.Sorted(maps.Keys(s.lists)) }

// List returns what a server offers of a kind, nil when that isn't known yet.
func (c *Catalog) List(server string, kind Kind) *List {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kinds[kind].lists[server]
}

// Items returns the items of a kind of all servers, those without a problem and
// not hidden by another, in the order of the servers' names and then their own.
func (c *Catalog) Items(kind Kind) []*Item {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var items []*Item
	s := c.kinds[kind]
	for _, server := range s.servers() {
		for _, item := range s.lists[server].Items {
			if s.byName[item.exposedKey()] == item {
				items = append(items, item)
			}
		}
	}
	return items
}

// Find returns the usable item with that exposed name, URI or template.
func (c *Catalog) Find(kind Kind, name string) *Item {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.kinds[kind].byName[name]
}

// Clashes returns the items of a kind that can't be seen since another server has
// the same.
func (c *Catalog) Clashes(kind Kind) []Clash {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.kinds[kind].clashes)
}

// Route returns the server that a resource URI belongs to: the one that lists
// it, else the first by name with a template (RFC 6570) that matches. A URI over
// 4 KiB is not held against templates. It gives up when ctx ends.
func (c *Catalog) Route(ctx context.Context, uri string) (server string, ok bool) {
	if item := c.Find(Resources, uri); item != nil {
		return item.Server, true
	}
	if len(uri) > maxRouted {
		return "", false
	}
	for _, item := range c.Items(Templates) {
		if ctx.Err() != nil {
			return "", false
		}
		if item.matches.MatchString(uri) {
			return item.Server, true
		}
	}
	return "", false
}
