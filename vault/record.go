// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/filelock"
)

// A record is the file that remembers the highest generation seen of each vault.
// It stands apart from the vaults, so that who can put an old vault back can't
// put an old record beside it. "" remembers nothing.
type record string

// recordJSON is what the file holds.
type recordJSON struct {
	Generations map[string]uint64 `json:"generations"`
}

// note remembers the generation of a vault that was read or written. It returns
// [ErrRollback] when a higher one was seen before, unless that is accepted: then
// it forgets the higher one.
func (r record) note(path string, c *contents, accept bool) error {
	if r == "" || c.id == "" {
		return nil
	}
	seen, err := r.read()
	if err != nil || seen.Generations[c.id] == c.generation {
		return err
	}
	unlock, err := r.lock()
	if err != nil {
		return fmt.Errorf("noting the vault's generation: %w", err)
	}
	defer unlock()
	if seen, err = r.read(); err != nil {
		return err
	}
	if highest := seen.Generations[c.id]; highest > c.generation && !accept {
		return &Error{
			Kind: ErrRollback, Path: path,
			Message: fmt.Sprintf("this is generation %d of the vault, and there was %d already", c.generation, highest),
			Fix:     "put the newer file back, or accept the older one with `garra vault list --accept-rollback`",
		}
	}
	seen.Generations[c.id] = c.generation
	data, err := json.Marshal(seen, json.Deterministic(true))
	if err == nil {
		err = atomicfile.Write(string(r), data)
		inherit(string(r))
	}
	if err != nil {
		return fmt.Errorf("noting the vault's generation: %w", err)
	}
	return nil
}

// lock keeps other processes from writing the record.
func (r record) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(string(r)), 0o700); err != nil {
		return nil, err
	}
	name := string(r) + ".lock"
	unlock, err = filelock.Lock(name)
	if err == nil {
		inherit(name)
	}
	return unlock, err
}

// read returns what is remembered; a file that isn't there remembers nothing.
func (r record) read() (recordJSON, error) {
	seen := recordJSON{}
	data, err := os.ReadFile(string(r))
	if err == nil {
		err = json.Unmarshal(data, &seen)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return seen, &Error{
			Kind: ErrDamaged, Path: string(r), Message: "the record of generations can't be read", Cause: err,
			Fix: "remove it; the next opening of the vault begins a new one",
		}
	}
	if seen.Generations == nil {
		seen.Generations = make(map[string]uint64)
	}
	return seen, nil
}
