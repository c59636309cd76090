// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/protocol"
)

// A Memory keeps what servers offered when they ran last, in a folder: for servers that are
// started only when they are needed, which nobody would need if nobody knew what they have.
// It is safe for concurrent use, also by several processes. The nil Memory keeps nothing.
type Memory struct{ dir string }

// NewMemory returns a Memory in a folder, which need not be there yet.
func NewMemory(dir string) *Memory { return &Memory{dir} }

// An Offer is all that a server offers.
type Offer struct {
	Instructions string
	Lists        []*List
}

// A kept is an Offer in its file.
type kept struct {
	Server       string                  `json:"server"`
	Entry        string                  `json:"entry"` // a digest of the entry: another text may offer other things
	At           time.Time               `json:"at"`
	Instructions string                  `json:"instructions"`
	Items        map[Kind][]protocol.Raw `json:"items"`
}

// file is where a server's offer is. Names of servers are names of files; two that a file
// system takes for one are told apart by what is in the file.
func (m *Memory) file(server string) string { return filepath.Join(m.dir, server+".json") }

// Save keeps what a server with that entry offers.
func (m *Memory) Save(server, entry string, offer Offer) error {
	if m == nil {
		return nil
	}
	k := kept{
		Server: server, Entry: entry, At: time.Now(), Instructions: offer.Instructions,
		Items: make(map[Kind][]protocol.Raw),
	}
	for _, list := range offer.Lists {
		for _, item := range list.Items {
			k.Items[list.Kind] = append(k.Items[list.Kind], item.Raw)
		}
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(m.file(server), append(text, '\n'))
}

// Load returns what a server with that entry offered last; ok is false when nobody knows, or
// what is known can't be read.
func (m *Memory) Load(server, entry string) (offer Offer, ok bool) {
	if m == nil {
		return Offer{}, false
	}
	text, err := os.ReadFile(m.file(server))
	var k kept
	if err != nil || json.Unmarshal(text, &k) != nil || k.Server != server || k.Entry != entry {
		return Offer{}, false
	}
	offer.Instructions = k.Instructions
	for _, kind := range Kinds() {
		list := newList(server, kind)
		list.ReadAt = k.At
		for _, raw := range k.Items[kind] {
			list.add(newItem(kind, server, raw))
		}
		offer.Lists = append(offer.Lists, list)
	}
	return offer, true
}
