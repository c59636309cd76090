// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/garraia/garra/internal/atomicfile"
)

// An isolation remembers the servers that a person restarted: they run with an
// isolated environment, although their entry says inherit_env, until the text
// of the entry changes. It is safe for concurrent use.
type isolation struct {
	path string

	mu      sync.Mutex        // guards digests, and the file
	digests map[string]string // server → digest of the entry that it holds for
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
	return i, nil
}

// holds reports whether a server with that text of its entry runs isolated.
func (i *isolation) holds(server, digest string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.digests[server] == digest
}

// force remembers that a server runs isolated.
func (i *isolation) force(server, digest string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.digests[server] == digest {
		return nil
	}
	i.digests[server] = digest
	if i.path == "" {
		return nil
	}
	data, err := json.MarshalIndent(i.digests, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(i.path, append(data, '\n'))
}
