// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/advice"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/internal/secrets"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
	"github.com/garraia/garra/vault"
)

// A locksmith opens the vault of an engine with what garra was given.
type locksmith struct {
	options vault.Options
	// key is the key that garra has, for a vault as the settings say; its error says why
	// there is none.
	key func(settings *mcpconfig.Settings) (vault.Key, error)
}

// locksmith opens vaults without asking anybody: a gateway has nobody to ask, but for
// serve when it starts.
func (g *globals) locksmith(ctx context.Context, options vault.Options, ask bool) locksmith {
	return locksmith{options: options, key: func(settings *mcpconfig.Settings) (vault.Key, error) {
		there, err := vault.Exists(options.Path)
		key, err := g.vaultKey(ctx, settings, ask && there && err == nil)
		clear(g.given) // the key has it, sealed
		g.given = nil
		return key, err
	}}
}

// newKeeper returns the secrets of an engine, whose servers follow what changes.
func (e *engine) newKeeper(env []string) *secrets.Keeper {
	return secrets.New(secrets.Options{
		Vault: e.smith.options, Env: env,
		Rotated: func(changed func(server, key string) bool) []string {
			e.remote.Rotate(changed)
			return e.supervisor.Rotate(changed)
		},
	})
}

// openVault opens the vault with what garra has, once: what fails is said, and told to
// the servers that need it. A key waits for a vault that isn't there yet.
func (e *engine) openVault(settings *mcpconfig.Settings) {
	if e.smith.key == nil {
		return
	}
	err := lockMemory(settings)
	key := vault.Key{}
	if err == nil {
		key, err = e.smith.key(settings)
	}
	switch {
	case err == nil:
		_, err = e.keeper.Unlock(key)
	case !errors.Is(err, errNoPassphrase):
		e.keeper.Lock(err)
	default:
		return // it is locked, and who needs it says so
	}
	switch {
	case err == nil:
		e.log.Info().Str("vault", e.smith.options.Path).Msg("the vault is open")
	case !errors.Is(err, vault.ErrNoVault):
		e.vaultTrouble(err)
	}
}

// vaultTrouble tells of a vault that can't be read.
func (e *engine) vaultTrouble(err error) {
	message := "the vault can't be read: " + err.Error()
	if errors.Is(err, vault.ErrWrongPassphrase) && e.keeper.Usable() == nil {
		message = otherKey
	}
	e.happened(source.Event{Kind: source.EventWarning, Message: message})
}

// otherKey says that the vault was written for another key while it was open.
const otherKey = "the vault has another passphrase now; what was read before stays until `garra vault unlock` opens it"

// heldSecrets are the secrets that can be had here and now, without asking a person.
func (g *globals) heldSecrets(ctx context.Context, places place.Places, settings *mcpconfig.Settings) *secrets.Keeper {
	options := g.vaultOptions(places)
	options.Record = "" // a check writes nothing
	keeper := secrets.New(secrets.Options{Vault: options, Env: os.Environ()})
	keeper.Configure(settings.Stores)
	if there, err := vault.Exists(options.Path); err != nil || !there {
		return keeper
	}
	err := lockMemory(settings)
	key := vault.Key{}
	if err == nil {
		key, err = g.vaultKey(ctx, settings, false)
	}
	switch {
	case errors.Is(err, errNoPassphrase):
		keeper.Lock(&secrets.Error{
			Message: "the vault is locked: this command has no passphrase for it",
			Fix:     "set " + passphraseFile + " or " + passphraseVariable + ", and check again",
		})
		return keeper
	case err != nil:
		keeper.Lock(err)
		return keeper
	}
	_, _ = keeper.Unlock(key) // who needs the vault is told why it is locked
	return keeper
}

// checked are secrets for a check: whether they can be had, and none of them.
type checked struct {
	*secrets.Keeper
	gateway map[mcpconfig.SecretUse]error // what the running one can't have, by server and key; nil without it
}

// checkedSecrets are those that the running gateway has open, where this command itself
// can't look into the vault, and else those that can be had here and now.
func (g *globals) checkedSecrets(
	ctx context.Context, places place.Places, settings *mcpconfig.Settings,
) (checked, error) {
	held := checked{Keeper: g.heldSecrets(ctx, places, settings)}
	client, err := g.running(ctx)
	if client == nil || err != nil || held.Usable() == nil {
		return held, err
	}
	info, err := client.Vault(ctx)
	if err != nil || !info.Open {
		return held, err
	}
	held.gateway = make(map[mcpconfig.SecretUse]error)
	for _, u := range info.Unavailable {
		held.gateway[mcpconfig.SecretUse{Server: u.Server, Key: u.Key}] = &secrets.Error{Message: u.Message, Fix: u.Fix}
	}
	return held, nil
}

// Check returns why a server can't have a secret, or nil.
func (c checked) Check(server, key string) error {
	if c.gateway == nil {
		return c.Keeper.Check(server, key)
	}
	return c.gateway[mcpconfig.SecretUse{Server: server, Key: key}]
}

// Secret implements envbuild.Secrets: it returns none, and why there is none.
func (c checked) Secret(_ context.Context, server, key string) (string, error) {
	return "", c.Check(server, key)
}

// unlocking implements adminapi.Vault.
type unlocking struct{ *engine }

// Unlock implements adminapi.Vault.
func (u unlocking) Unlock(_ context.Context, passphrase []byte) (restarted []string, locked bool, err error) {
	var key vault.Key
	if settings := u.current().Settings; len(settings.Vault.Identities) > 0 {
		key, err = identityKey(&settings.Vault)
	} else {
		key, err = passphraseKey(passphrase)
	}
	if err != nil {
		return nil, false, err
	}
	restarted, err = u.keeper.Unlock(key)
	if err == nil {
		u.publish(adminapi.Event{Kind: "vault", Message: "the vault is open"})
		u.log.Info().Msg("the vault is open")
	}
	return restarted, errors.Is(err, vault.ErrWrongPassphrase), err
}

// Unavailable implements adminapi.Vault.
func (u unlocking) Unavailable() (list []adminapi.UnavailableSecret, open bool) {
	for _, use := range u.current().Secrets {
		err := u.keeper.Check(use.Server, use.Key)
		if err == nil {
			continue
		}
		fix, _ := advice.Of(err)
		list = append(list, adminapi.UnavailableSecret{
			Server: use.Server, Key: use.Key, Message: err.Error(), Fix: fix,
		})
	}
	return list, u.keeper.Usable() == nil
}

// Refresh implements adminapi.Vault.
func (u unlocking) Refresh() ([]string, error) {
	restarted, err := u.keeper.Refresh()
	switch {
	case errors.Is(err, vault.ErrWrongPassphrase):
		return nil, errors.New(otherKey)
	case err != nil:
		return nil, fmt.Errorf("reading the vault: %w", err)
	}
	return restarted, nil
}
