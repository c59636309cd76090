// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/garraia/garra/catalog"
)

// A listCache keeps the lists of all servers as clients get them, until what they
// depend on changes. It is safe for concurrent use.
type listCache struct {
	mu    sync.Mutex // guards lists
	lists map[catalog.Kind]cachedList
}

// A cachedList is a result of a list request.
type cachedList struct {
	edition edition
	result  Raw
}

// An edition is what lists depend on: the servers' items and the rules.
type edition struct{ items, rules uint64 }

func (g *Gateway) edition() edition {
	return edition{g.catalog.Version(), g.rules.Load()}
}

// get returns the list of an edition, nil when it isn't there.
func (c *listCache) get(kind catalog.Kind, e edition) Raw {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.lists[kind]; l.edition == e {
		return l.result
	}
	return nil
}

func (c *listCache) put(kind catalog.Kind, e edition, result Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = make(map[catalog.Kind]cachedList)
	}
	c.lists[kind] = cachedList{e, result}
}
