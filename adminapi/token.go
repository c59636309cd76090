// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/filelock"
)

// A Role says what the holder of a token may do.
type Role string

// The roles. A client token opens the MCP endpoints and nothing else; the
// others open the admin routes and never an MCP endpoint.
const (
	RoleClient   Role = "client"
	RoleViewer   Role = "viewer"   // reads
	RoleOperator Role = "operator" // and starts, stops, restarts
	RoleAdmin    Role = "admin"    // and changes the configuration
)

// rank orders the admin roles; a client has none.
func (r Role) rank() int {
	switch r {
	case RoleViewer:
		return 1
	case RoleOperator:
		return 2
	case RoleAdmin:
		return 3
	case RoleClient:
	}
	return 0
}

// Valid reports whether the role exists.
func (r Role) Valid() bool { return r == RoleClient || r.rank() > 0 }

// tokenPrefix lets secret scanners know a token when they see one.
const tokenPrefix = "garra_"

// A Token is what is stored of a token: never itself, only a digest of it. The
// secret has 130 bits from crypto/rand, so a plain hash is enough.
type Token struct {
	ID        string    `json:"id"`
	Role      Role      `json:"role"`
	Client    string    `json:"client,omitempty"` // the name of a client token's holder
	CreatedAt time.Time `json:"created_at"`
	Hash      string    `json:"hash,omitempty"` // hexadecimal SHA-256 of the token
}

// Tokens are the tokens of one configuration, in a file that commands change and
// a running gateway reads again. It is safe for concurrent use, also by several
// processes.
type Tokens struct {
	path string

	mu     sync.Mutex  // guards all below
	read   fs.FileInfo // of the file that was read last; nil when there was none
	tokens []Token
}

// OpenTokens returns the tokens in a file, which need not exist yet.
func OpenTokens(path string) *Tokens { return &Tokens{path: path} }

// Create makes a token and stores its digest. It returns the token itself, the
// only time that it can be seen.
func (t *Tokens) Create(role Role, client string, now time.Time) (Token, string, error) {
	secret := tokenPrefix + rand.Text()
	token := Token{
		ID: strings.ToLower(rand.Text()[:10]), Role: role, Client: client,
		CreatedAt: now.UTC().Truncate(time.Second), Hash: digest(secret),
	}
	err := t.change(func(tokens []Token) ([]Token, error) { return append(tokens, token), nil })
	if err != nil {
		return Token{}, "", err
	}
	token.Hash = ""
	return token, secret, nil
}

// ErrNoToken is returned by Revoke for an id that isn't there.
var ErrNoToken = errors.New("there is no such token")

// Revoke takes a token out. It fails with [ErrNoToken], and touches nothing,
// when there is none of that id.
func (t *Tokens) Revoke(id string) error {
	if list, err := t.List(); err != nil {
		return err
	} else if !slices.ContainsFunc(list, func(token Token) bool { return token.ID == id }) {
		if i := slices.IndexFunc(list, func(token Token) bool { return token.Client == id }); i >= 0 && id != "" {
			return fmt.Errorf("%w: %.40q is the name of a client, and what is wanted is the id of a token, "+
				"such as %s; see `garra token list`", ErrNoToken, id, list[i].ID)
		}
		return fmt.Errorf("%w: %.40q; see the ids in `garra token list`", ErrNoToken, id)
	}
	return t.change(func(tokens []Token) ([]Token, error) {
		return slices.DeleteFunc(slices.Clone(tokens), func(token Token) bool { return token.ID == id }), nil
	})
}

// List returns all tokens without their digests.
func (t *Tokens) List() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.readLocked(); err != nil {
		return nil, err
	}
	list := make([]Token, len(t.tokens))
	for i, token := range t.tokens {
		token.Hash = ""
		list[i] = token
	}
	return list, nil
}

// Find returns the stored token that a client presented; ok is false when there
// is none. A file that can't be read lets nobody in.
func (t *Tokens) Find(secret string) (token Token, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.readLocked() != nil {
		return Token{}, false
	}
	// Comparing digests of a random secret needs no constant time: knowing how
	// much of a digest is right leads to no secret.
	hash := digest(secret)
	for _, token := range t.tokens {
		if token.Hash == hash {
			return token, true
		}
	}
	return Token{}, false
}

// change reads the file, has it changed and writes it, under a lock that other
// processes honour.
func (t *Tokens) change(edit func([]Token) ([]Token, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	unlock, err := filelock.Lock(t.path + ".lock")
	if err != nil {
		return fmt.Errorf("locking the tokens: %w", err)
	}
	defer unlock()
	if err := t.readLocked(); err != nil {
		return err
	}
	tokens, err := edit(t.tokens)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(tokenFile{tokens}, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(t.path, append(data, '\n')); err != nil {
		return fmt.Errorf("writing the tokens: %w", err)
	}
	t.read = nil
	return nil
}

type tokenFile struct {
	Tokens []Token `json:"tokens"`
}

// readLocked reads the file when it has changed.
func (t *Tokens) readLocked() error {
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.tokens, t.read = nil, nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	if t.read != nil && os.SameFile(info, t.read) && info.ModTime().Equal(t.read.ModTime()) {
		return nil
	}
	data, err := os.ReadFile(t.path)
	if err != nil {
		return fmt.Errorf("reading the tokens: %w", err)
	}
	var file tokenFile
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("reading the tokens: %s: %w", t.path, err)
	}
	t.tokens, t.read = file.Tokens, info
	return nil
}

func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Revoked looks at the tokens once and returns a function that reports whether a
// principal was the holder of one that is no longer there. Of a file that can't
// be read, no token is.
func (t *Tokens) Revoked() func(principal string) bool {
	list, err := t.List()
	if err != nil {
		list = nil
	}
	return func(principal string) bool {
		id, ok := strings.CutPrefix(principal, tokenPrincipal(""))
		return ok && !slices.ContainsFunc(list, func(token Token) bool { return token.ID == id })
	}
}
