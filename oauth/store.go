// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/filelock"
)

// A grant is what a login brought, as it stands in its file.
type grant struct {
	Server string `json:"server"`
	URL    string `json:"url"` // of the server; the grant is of no other

	Issuer             string `json:"issuer"`
	Resource           string `json:"resource"`
	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`

	Client       string `json:"client"` // which kind
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret,omitempty"` // of a dynamic one
	AuthMethod   string `json:"token_endpoint_auth_method"`

	Scopes       []string  `json:"scopes"`
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	ObtainedAt   time.Time `json:"obtained_at"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
}

const (
	maxAhead  = time.Minute // before its end at most, a token is renewed
	aheadPart = 4           // of its lifetime is the most for that
)

// expired reports whether a token is of no use any more.
func (g *grant) expired() bool { return !g.ExpiresAt.IsZero() && !time.Now().Before(g.ExpiresAt) }

// aging reports whether it is time to renew a token.
func (g *grant) aging() bool {
	ahead := min(maxAhead, g.ExpiresAt.Sub(g.ObtainedAt)/aheadPart)
	return !g.ExpiresAt.IsZero() && !time.Now().Before(g.ExpiresAt.Add(-ahead))
}

// A Store is a folder with a file for each grant, which only its owner may read.
// It is safe for concurrent use, also by several processes.
type Store struct {
	dir string

	mu      sync.Mutex // guards all below
	seen    map[string]*sighting
	flights map[string]*flight
	failed  map[string]time.Time // when a refresh ahead of time failed last
	closed  bool
	work    sync.WaitGroup // the flights; joined under mu while closed is false
}

// A sighting is a file as it was read last.
type sighting struct {
	info  fs.FileInfo
	grant *grant
}

// NewStore returns the store in a folder, which need not exist.
func NewStore(dir string) *Store {
	return &Store{
		dir: dir, seen: make(map[string]*sighting), flights: make(map[string]*flight),
		failed: make(map[string]time.Time),
	}
}

// path is the file of a server. Names that differ only in their case have
// different files, also where file names don't tell case.
func (s *Store) path(name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, strings.ToLower(name)+"-"+hex.EncodeToString(sum[:4])+".json")
}

// read returns the grant of a server, nil when there is none. Others read it too,
// so the caller changes only copies. A file that is as it was is not read again.
func (s *Store) read(name string) (*grant, error) {
	path := s.path(name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the token of the last login: %w", err)
	}
	s.mu.Lock()
	last := s.seen[path]
	s.mu.Unlock()
	if last != nil && os.SameFile(last.info, info) && last.info.Size() == info.Size() &&
		last.info.ModTime().Equal(info.ModTime()) {
		return last.grant, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the token of the last login: %w", err)
	}
	g := new(grant)
	if err := json.Unmarshal(text, g); err != nil {
		return nil, fmt.Errorf("%w: the file of the last login, %s, is no JSON", ErrLogin, path)
	}
	s.mu.Lock()
	s.seen[path] = &sighting{info, g}
	s.mu.Unlock()
	return g, nil
}

// write replaces the grant of a server. The caller has its lock.
func (s *Store) write(g *grant) error {
	text, err := json.MarshalIndent(g, "", "  ")
	if err == nil {
		err = atomicfile.Write(s.path(g.Server), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keeping the token: %w", err)
	}
	return nil
}

// remove forgets the grant of a server. The caller has its lock.
func (s *Store) remove(name string) error {
	if err := os.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting the token: %w", err)
	}
	return nil
}

// lockPause is the time between two looks whether a lock is free.
const lockPause = 20 * time.Millisecond

// lock gets the lock of a grant.
func (s *Store) lock(ctx Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of tokens: %w", err)
	}
	path := strings.TrimSuffix(s.path(name), ".json") + ".lock"
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for {
		unlock, err := filelock.Try(path)
		if !errors.Is(err, filelock.ErrLocked) {
			return unlock, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Close waits until no refresh is under way, or ctx ends, and lets none begin.
func (s *Store) Close(ctx Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the last refresh, whose requests have a timeout
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
