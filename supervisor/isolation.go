// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"sync"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/mcpconfig"
)

// An isolation remembers the servers that a person restarted: they run with an
// isolated environment, although their entry says inherit_env, until the text
// of the entry changes. It is safe for concurrent use.
type isolation struct {
	path string

	mu      sync.Mutex        // guards digests, and the file
	digests map[string]string // server → digest of the entry that it holds for
}

// ReadIsolation reads an isolation file, and changes nothing. It returns what
// reports whether an entry that asks for the environment doesn't get it, since a
// person started its server; without a file there is no such entry. One that
// can't be read is an error: whoever went on would hand the environment to servers
// that must not have it.
func ReadIsolation(path string) (forced func(*mcpconfig.Server) bool, err error) {
	i, err := openIsolation(path)
	if err != nil {
		return nil, err
	}
	return i.holds, nil
}

func openIsolation(path string) (*isolation, error) {
	i := &isolation{path: path, digests: make(map[string]string)}
	if path == "" {
		return i, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which servers run isolated: %w", err)
	}
	if err := json.Unmarshal(data, &i.digests); err != nil {
		return nil, fmt.Errorf("reading which servers run isolated: %s: %w", path, err)
	}
	if i.digests == nil { // the file holds null
		i.digests = make(map[string]string)
	}
	return i, nil
}

// holds reports whether a server with that entry runs isolated, although it asks
// for the environment.
func (i *isolation) holds(entry *mcpconfig.Server) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	held, ok := i.digests[entry.Name]
	return ok && entry.InheritEnv && held == entry.Digest()
}

// force remembers that a server runs isolated while its entry has that text.
func (i *isolation) force(entry *mcpconfig.Server) error {
	return i.change(func(digests map[string]string) { digests[entry.Name] = entry.Digest() })
}

// lift forgets it.
func (i *isolation) lift(server string) error {
	return i.change(func(digests map[string]string) { delete(digests, server) })
}

// change edits what is remembered, in the file first: when that fails nothing
// has changed.
func (i *isolation) change(edit func(map[string]string)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	next := maps.Clone(i.digests)
	edit(next)
	if maps.Equal(next, i.digests) {
		return nil
	}
	if i.path != "" {
		data, err := json.MarshalIndent(next, "", "  ")
		if err != nil {
			return err
		}
		if err := atomicfile.Write(i.path, append(data, '\n')); err != nil {
			return err
		}
	}
	i.digests = next
	return nil
}
