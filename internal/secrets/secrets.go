// SPDX-License-Identifier: Apache-2.0

// Package secrets answers the references of servers to secrets: from the vault,
// which may be locked or change at any time, and from the stores that the
// configuration names. It decides which server may have which.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/garraia/garra/internal/stores"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// An Error is why a server can't have a secret.
type Error struct {
	Message string
	Fix     string
	Cause   error // may be nil
}

// Error says what is the matter.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Advice says what can be done.
func (e *Error) Advice() string { return e.Fix }

// Options are what a Keeper needs.
type Options struct {
	Vault vault.Options
	// Env is garra's own environment, of which the commands of stores get a part.
	Env []string
	// Rotated is told that secrets have other values, came or went, or may be had by
	// other servers: changed says whether a key did so for a server. It returns the
	// servers that are restarted for that, and may be nil.
	Rotated func(changed func(server, key string) bool) (restarted []string)
}

// A Keeper has the secrets of one configuration. It implements envbuild.Secrets and
// is safe for concurrent use.
type Keeper struct {
	options Options
	opening sync.Mutex // held while the vault is opened
	turning sync.Mutex // held while the vault is read or written again, so that each change is told once

	mu      sync.Mutex // guards all below
	vault   *vault.Vault
	locked  error                    // why it is, while vault is nil
	key     *vault.Key               // that the vault was to be opened with last; nil for none
	seen    string                   // the stamp of the vault's file when it was looked at last
	noticed notice                   // what came of a change and was told to nobody who asked
	stores  map[string]*stores.Store // by name
	broken  map[string]error         // stores that can't be used, and why
	names   []string                 // of all stores, sorted
	// configured are the stores as the configuration has them; nil before there is one.
	configured map[string]mcpconfig.Store
}

// New returns a Keeper whose vault is locked, with no stores.
func New(options Options) *Keeper {
	return &Keeper{options: options, locked: &Error{
		Message: "the vault is locked: nobody has given its passphrase",
		Fix: "open it with `garra vault unlock`, or start garra with GARRAIA_VAULT_PASSPHRASE or " +
			"GARRAIA_VAULT_PASSPHRASE_FILE set",
	}}
}

// Configure takes the stores of a configuration.
//
// It returns the names of those that came, went, or are others than before. One that went
// keeps its name, so that a reference to it doesn't become a text as long as garra runs.
func (k *Keeper) Configure(configured []mcpconfig.Store) (changed []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.configured
	if k.configured == nil {
		k.stores, k.broken = make(map[string]*stores.Store), make(map[string]error)
	}
	k.configured = make(map[string]mcpconfig.Store)
	for _, of := range configured {
		k.configured[of.Name] = of
		if was, ok := before[of.Name]; ok && reflect.DeepEqual(was, of) {
			continue
		}
		changed = append(changed, of.Name)
		delete(k.stores, of.Name)
		delete(k.broken, of.Name)
		if store, err := stores.New(of, k.options.Env); err != nil {
			k.broken[of.Name] = err
		} else {
			k.stores[of.Name] = store
		}
	}
	for name := range before {
		if _, still := k.configured[name]; still {
			continue
		}
		changed = append(changed, name)
		delete(k.stores, name)
		k.broken[name] = &Error{
			Message: fmt.Sprintf("the store %q is no longer in config.yml", name),
			Fix:     "name it in the section secrets again, or take the reference out",
		}
	}
	k.names = slices.Sorted(maps.Keys(k.stores))
	for name := range k.broken {
		k.names = append(k.names, name)
	}
	slices.Sort(k.names)
	slices.Sort(changed)
	return changed
}

// Stores implements envbuild.Secrets.
func (k *Keeper) Stores() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names
}

// Secret implements envbuild.Secrets. Its errors have a method Advice.
func (k *Keeper) Secret(ctx context.Context, server, key string) (string, error) {
	if name, rest, ok := strings.Cut(key, ":"); ok {
		store, err := k.store(name)
		if err != nil {
			return "", err
		}
		return store.Secret(ctx, rest)
	}
	v, err := k.permitted(server, key)
	if err != nil {
		return "", err
	}
	secret, err := v.Value(key)
	if err != nil {
		return "", err
	}
	return secret.Reveal()
}

// Check returns why a server can't have a secret, or nil. What a store has isn't
// asked for.
func (k *Keeper) Check(server, key string) error {
	if name, _, ok := strings.Cut(key, ":"); ok {
		_, err := k.store(name)
		return err
	}
	_, err := k.permitted(server, key)
	return err
}

func (k *Keeper) store(name string) (*stores.Store, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.broken[name]; err != nil {
		return nil, err
	}
	if store := k.stores[name]; store != nil {
		return store, nil
	}
	return nil, &Error{
		Message: fmt.Sprintf("there is no store %q", name), Fix: "name it in the section secrets of config.yml",
	}
}

// permitted returns the vault when the server may have that key of it.
func (k *Keeper) permitted(server, key string) (*vault.Vault, error) {
	v, err := k.open()
	if err != nil {
		return nil, err
	}
	entry, ok := v.Entry(key)
	owner, _, owned := vault.Owner(key)
	switch {
	case ok && entry.Allows(server):
		return v, nil
	case ok && owned && owner != server:
		return nil, &Error{
			Message: fmt.Sprintf("the key belongs to the server %q", owner),
			Fix:     fmt.Sprintf("share it with `garra vault share %s --for %s`", key, server),
		}
	case ok:
		return nil, &Error{
			Message: "the vault has the key, and it is not shared with this server",
			Fix:     fmt.Sprintf("share it with `garra vault share %s --for %s`", key, server),
		}
	case owned && owner == server:
		return nil, &Error{
			Message: "the vault has no such key", Fix: fmt.Sprintf("store it with `garra vault set %s`", key),
		}
	}
	return nil, &Error{
		Message: "the vault has no such key",
		Fix:     fmt.Sprintf("store it with `garra vault set %s --for %s`", key, server),
	}
}

// open returns the vault, or why there is none.
func (k *Keeper) open() (*vault.Vault, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.vault != nil {
		return k.vault, nil
	}
	if there, err := vault.Exists(k.options.Vault.Path); err == nil && !there {
		return nil, &Error{
			Message: "there is no vault",
			Fix:     "make one with `garra vault init`, or write ${env:NAME} and set NAME where garra is started",
			Cause:   vault.ErrNoVault,
		}
	}
	return nil, k.locked
}

// Usable returns why the vault can't be changed now, in the words that servers are told:
// its cause is [vault.ErrNoVault] when there is none. It returns nil when it can.
func (k *Keeper) Usable() error {
	_, err := k.open()
	return err
}

// Blocked reports whether what holds this secret may not leave at all, rather than
// without it.
func (k *Keeper) Blocked(key string) bool {
	k.mu.Lock()
	v := k.vault
	k.mu.Unlock()
	if v == nil {
		return false
	}
	entry, ok := v.Entry(key)
	return ok && entry.Policy == vault.PolicyBlock
}

// Unlock opens the vault with a key, and tells who waits for it. Where there is no
// vault yet the key waits for one, and the error is [vault.ErrNoVault]. A vault that is
// open stays so when the key is wrong. Errors are those of [vault.Open]; the servers
// are told the same until it is opened. Restarted are the servers that are restarted.
func (k *Keeper) Unlock(key vault.Key) (restarted []string, err error) {
	k.opening.Lock() // opening takes memory by the hundred megabytes
	defer k.opening.Unlock()
	k.turning.Lock() // what is read of the vault that was open is read before that is closed
	defer k.turning.Unlock()
	now := stamp(k.options.Vault.Path)
	v, err := vault.Open(k.options.Vault, key)
	k.mu.Lock()
	old := k.vault
	switch {
	case err == nil:
		k.vault, k.key, k.seen = v, &key, now
	case old == nil:
		k.locked, k.key, k.seen = lockedBy(err), &key, now
	}
	k.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if old == nil {
		return k.rotated(func(_, key string) bool { return !strings.Contains(key, ":") }), nil
	}
	defer old.Close()
	return k.turned(values(old), values(v)), nil
}

// lockedBy says why the vault could not be opened.
func lockedBy(err error) error {
	e := &Error{
		Message: "the vault could not be opened: " + err.Error(), Fix: "open it with `garra vault unlock`", Cause: err,
	}
	of, ok := errors.AsType[*vault.Error](err)
	if !ok {
		return e
	}
	e.Message = "the vault could not be opened: " + of.Message
	switch {
	case errors.Is(err, vault.ErrWrongPassphrase):
		e.Fix = "open it with `garra vault unlock`, or start garra with what opens it"
	case of.Fix != "":
		e.Fix = of.Fix
	}
	return e
}

// Lock says why the vault stays locked for now, in the words that servers are told.
func (k *Keeper) Lock(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.locked = why
}

// Refresh reads the vault again if it was written, and tells whose secrets have
// changed. It does nothing while the vault is locked. After an error what was read
// before stays in force. Who wrote the vault and asks then is told whom that concerned,
// also if [Keeper.Watch] was the first to notice.
func (k *Keeper) Refresh() (restarted []string, err error) {
	restarted, err = k.reload()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && len(restarted) == 0 && k.noticed.stamp == stamp(k.options.Vault.Path) {
		restarted = k.noticed.restarted
	}
	k.noticed = notice{}
	return restarted, err
}

// A notice is what came of a state of the vault's file that nobody had asked about yet.
type notice struct {
	stamp     string
	restarted []string
}

// reload reads the vault again if it was written.
func (k *Keeper) reload() (restarted []string, err error) {
	k.mu.Lock()
	v := k.vault
	k.mu.Unlock()
	if v == nil {
		return nil, nil
	}
	return k.changing(v, func() error {
		_, err := v.Reload()
		return err
	})
}

// Update changes the vault, as [vault.Vault.Update] does, and tells whose secrets have
// changed. While the vault is locked, or there is none, it returns what servers are
// told of that.
func (k *Keeper) Update(change func(*vault.Edit) error) (restarted []string, err error) {
	v, err := k.open()
	if err != nil {
		return nil, err
	}
	restarted, err = k.changing(v, func() error { return v.Update(change) })
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noticed = notice{} // the caller is told
	return restarted, err
}

// changing tells whom it concerns what changes while something is done with the vault.
func (k *Keeper) changing(v *vault.Vault, do func() error) (restarted []string, err error) {
	k.turning.Lock()
	defer k.turning.Unlock()
	k.mu.Lock()
	current := k.vault == v
	k.mu.Unlock()
	if !current { // another was opened meanwhile, which has what is there now
		return nil, vault.ErrClosed
	}
	before := values(v)
	err = do()
	restarted = k.turned(before, values(v))
	if len(restarted) > 0 { // before turning is unlocked, for which a Refresh may wait
		k.mu.Lock()
		k.noticed = notice{stamp(k.options.Vault.Path), restarted}
		k.mu.Unlock()
	}
	return restarted, err
}

// turned tells whom a change of what the vault holds concerns, if anybody.
func (k *Keeper) turned(before, after map[string]holding) []string {
	keys := make(map[string]bool) // that came, went, have another value or other users
	for name, now := range after {
		if was, ok := before[name]; !ok || !was.same(now) {
			keys[name] = true
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			keys[name] = true
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return k.rotated(func(server, key string) bool {
		was, now := before[key], after[key]
		had, has := was.entry.Allows(server), now.entry.Allows(server)
		return keys[key] && (had != has || has && (!was.sameValue(now) || was.entry.Policy != now.entry.Policy))
	})
}

func (k *Keeper) rotated(changed func(server, key string) bool) []string {
	if k.options.Rotated == nil {
		return nil
	}
	return k.options.Rotated(changed)
}

// A holding is a value of the vault and what is known of it; the zero value stands for
// none.
type holding struct {
	value *vault.Secret
	entry vault.Entry
}

// same reports whether nobody has to be told.
func (h holding) same(o holding) bool {
	return h.entry.Policy == o.entry.Policy && slices.Equal(h.entry.For, o.entry.For) && h.sameValue(o)
}

func (h holding) sameValue(o holding) bool {
	return h.value != nil && o.value != nil && h.value.Equal(o.value)
}

// values returns what a vault holds.
func values(v *vault.Vault) map[string]holding {
	all := make(map[string]holding)
	for _, entry := range v.Entries() {
		value, err := v.Value(entry.Name)
		if err != nil {
			continue // it went meanwhile
		}
		all[entry.Name] = holding{value, entry}
	}
	return all
}

// look is how often a Keeper looks whether the vault was written.
const look = 2 * time.Second

// Watch follows the vault's file until ctx ends: what changes is told at once, and
// one that appears is opened with the key of the last [Keeper.Unlock]. What goes wrong
// is told once.
func (k *Keeper) Watch(ctx context.Context, trouble func(error)) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := k.follow(); err != nil {
			trouble(err)
		}
	}
}

// follow looks at the file once. An error is returned once for each state of the file.
func (k *Keeper) follow() error {
	now := stamp(k.options.Vault.Path)
	k.mu.Lock()
	same, opened, key := now == k.seen, k.vault != nil, k.key
	k.seen = now
	k.mu.Unlock()
	switch {
	case same:
		return nil
	case opened:
		_, err := k.reload()
		return err
	case key != nil && now != "":
		_, err := k.Unlock(*key)
		return err
	}
	return nil
}

// stamp tells the states of a file apart without reading it; empty when there is none.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d", info.ModTime().UnixNano(), info.Size())
}

// Close forgets what the vault held.
func (k *Keeper) Close() {
	k.turning.Lock()
	defer k.turning.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.vault != nil {
		k.vault.Close()
		k.vault = nil
	}
}
