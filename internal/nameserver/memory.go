// SPDX-License-Identifier: Apache-2.0

package nameserver

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
)

// How much is remembered. An address may have many names, where one machine serves many
// sites.
const (
	maxAddresses = 4096
	maxNames     = 64 // of one address
)

// A memory knows which names were told to have an address. It forgets what was not told
// for the longest time. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	known map[netip.Addr]*list.Element
	order list.List // of *remembered, the last told first
}

type remembered struct {
	addr  netip.Addr
	names []string // the last told last
}

func newMemory() *memory { return &memory{known: make(map[netip.Addr]*list.Element)} }

// note remembers that a name has an address.
func (m *memory) note(name string, addr netip.Addr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.known[addr]
	if !ok {
		at = m.order.PushFront(&remembered{addr: addr})
		m.known[addr] = at
	}
	m.order.MoveToFront(at)
	entry := at.Value.(*remembered)
	entry.names = slices.DeleteFunc(entry.names, func(known string) bool { return known == name })
	entry.names = append(entry.names, name)
	if len(entry.names) > maxNames {
		entry.names = entry.names[1:]
	}
	if m.order.Len() > maxAddresses {
		oldest := m.order.Back()
		m.order.Remove(oldest)
		delete(m.known, oldest.Value.(*remembered).addr)
	}
}

// names returns the names that an address has.
func (m *memory) names(addr netip.Addr) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.known[addr]
	if !ok {
		return nil
	}
	return slices.Clone(at.Value.(*remembered).names)
}
