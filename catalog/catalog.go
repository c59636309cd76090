// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"slices"
	"sync"

	"github.com/yosida95/uritemplate/v3"
)

// A Catalog holds the listings of all servers. It is safe for concurrent use.
type Catalog struct {
	mu       sync.RWMutex // guards all below
	listings map[string]*Listing
	byName   map[Kind]map[string]*Item // of usable items: by exposed name, URI or template
	clashes  []Clash
}

// A Clash is two usable items that clients of all servers would ask for by the
// same name or URI: they get the first of them, by server name.
type Clash struct{ Shown, Hidden *Item }

// New returns an empty Catalog.
func New() *Catalog {
	return &Catalog{
		listings: make(map[string]*Listing), byName: make(map[Kind]map[string]*Item),
	}
}

// Set takes a server's listing, nil to forget the server, and returns the kinds
// of which anything changed.
func (c *Catalog) Set(server string, next *Listing) []Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.listings[server]
	if next == nil {
		delete(c.listings, server)
	} else {
		c.listings[server] = next
	}
	c.index()
	return differing(last, next)
}

// differing returns the kinds in which two listings differ.
func differing(a, b *Listing) []Kind {
	var kinds []Kind
	for _, kind := range Kinds() {
		same := slices.EqualFunc(itemsOf(a, kind), itemsOf(b, kind), func(x, y *Item) bool {
			return bytes.Equal(x.Raw, y.Raw)
		})
		if !same {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func itemsOf(l *Listing, kind Kind) []*Item {
	if l == nil {
		return nil
	}
	return l.Items[kind]
}

// index rebuilds the way from names to items. Where two servers have the same
// name or URI, the first by server name has it.
func (c *Catalog) index() {
	c.clashes = nil
	for _, kind := range Kinds() {
		names := make(map[string]*Item)
		for _, server := range c.serversLocked() {
			for _, item := range c.listings[server].Items[kind] {
				if item.Problem != "" {
					continue
				}
				if shown := names[item.exposedKey()]; shown != nil {
					c.clashes = append(c.clashes, Clash{shown, item})
					continue
				}
				names[item.exposedKey()] = item
			}
		}
		c.byName[kind] = names
	}
}

// exposedKey is what clients of all servers ask for.
func (i *Item) exposedKey() string {
	if i.Exposed != "" {
		return i.Exposed
	}
	return i.Name
}

func (c *Catalog) serversLocked() []string {
	servers := make([]string, 0, len(c.listings))
	for server := range c.listings {
		servers = append(servers, server)
	}
	slices.Sort(servers)
	return servers
}

// Listing returns what a server offers, nil when that isn't known yet.
func (c *Catalog) Listing(server string) *Listing {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listings[server]
}

// Items returns the items of a kind of all servers, those without a problem and
// not hidden by another, in the order of the servers' names and then their own.
func (c *Catalog) Items(kind Kind) []*Item {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var items []*Item
	for _, server := range c.serversLocked() {
		for _, item := range c.listings[server].Items[kind] {
			if c.byName[kind][item.exposedKey()] == item {
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
	return c.byName[kind][name]
}

// Clashes returns what can't be seen since another server has the same.
func (c *Catalog) Clashes() []Clash {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.clashes)
}

// Route returns the server that a resource URI belongs to: the one that lists
// it, else the first by name with a template (RFC 6570) that matches.
func (c *Catalog) Route(uri string) (server string, ok bool) {
	if item := c.Find(Resources, uri); item != nil {
		return item.Server, true
	}
	for _, item := range c.Items(Templates) {
		t, err := uritemplate.New(item.Name)
		if err == nil && t.Match(uri) != nil {
			return item.Server, true
		}
	}
	return "", false
}
