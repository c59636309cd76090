// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// A transfer is a secret on its way to the vault.
type transfer struct {
	mcpconfig.Plaintext
	key   string // in the vault
	value *vault.Secret
	was   *vault.Secret // what the vault had under the key; nil for nothing
}

// reference is what stands in the file instead.
func (t *transfer) reference() string {
	if t.Before == "" && t.After == "" {
		return "vault:" + t.key
	}
	return t.Before + "${vault:" + t.key + "}" + t.After
}

// move moves the secrets of an entry to the vault, and puts references in their place.
// Before has those that stood in the entry already; nil means that they are to be moved
// as well as all others, else they may stay where that can't be done.
func (e *Editor) move(s *session, server *mcpconfig.Server, before map[string]string, result *Result) error {
	found := server.Plaintext()
	why := e.Vault.Usable()
	if before != nil && why != nil {
		found = fresh(found, before)
	}
	switch {
	case len(found) == 0, why != nil && e.AllowPlaintext:
		return nil
	case why != nil:
		return &Locked{found[0].Field + " holds a secret, which is not written to the file", why}
	}
	movable := slices.DeleteFunc(slices.Clone(found), func(p mcpconfig.Plaintext) bool { return p.Secret == "" })
	for _, p := range found {
		if p.Secret != "" {
			continue
		}
		if before != nil && !e.AllowPlaintext && len(fresh([]mcpconfig.Plaintext{p}, before)) > 0 {
			return &Refused{mixed(server, p)}
		}
		result.Left = append(result.Left, Move{Server: server.Name, File: server.Origin.File, Field: p.Field})
	}
	return e.transfer(s, server, movable, result)
}

// mixed says that a secret can't be told from the references around it.
func mixed(server *mcpconfig.Server, p mcpconfig.Plaintext) mcpconfig.Findings {
	code := mcpconfig.CodeSecretPlaintext
	return mcpconfig.Findings{{
		Severity: mcpconfig.Error, Code: code, File: server.Origin.File, Server: server.Name,
		Message: p.Field + " holds a secret beside references, so that it can't be moved to the vault",
		Fix:     "store it with `garra vault set`, and refer to it",
	}}
}

// transfer moves secrets that stand for themselves.
func (e *Editor) transfer(s *session, server *mcpconfig.Server, found []mcpconfig.Plaintext, result *Result) error {
	transfers, err := e.store(s, server.Name, found)
	if err != nil {
		return err
	}
	if len(transfers) > 0 {
		result.undo = func() error { return e.takeBack(transfers) }
	}
	for i := range transfers {
		t := &transfers[i]
		if err := s.edited.SetField(server.Name, t.Field, t.reference()); err != nil {
			return err
		}
		result.Moved = append(result.Moved, Move{server.Name, server.Origin.File, t.Field, t.key})
	}
	return nil
}

// fresh are the secrets that did not stand in the entry before.
func fresh(found []mcpconfig.Plaintext, before map[string]string) []mcpconfig.Plaintext {
	var added []mcpconfig.Plaintext
	for _, p := range found {
		if text, ok := before[p.Field]; !ok || text != p.Before+p.Secret+p.After {
			added = append(added, p)
		}
	}
	return added
}

// store puts secrets into the vault, as the server's own. A key that the entry referred to
// before it was changed gets the new value; any other that is there already keeps its own.
func (e *Editor) store(s *session, server string, found []mcpconfig.Plaintext) (transfers []transfer, err error) {
	if len(found) == 0 {
		return nil, nil
	}
	now, err := s.edited.Config()
	if err != nil {
		return nil, err
	}
	taken, before := referred(now, server), referred(s.config, server)
	for _, p := range found {
		value, err := vault.Seal([]byte(p.Secret))
		if err != nil {
			return nil, err
		}
		transfers = append(transfers, transfer{Plaintext: p, value: value})
	}
	err = e.Vault.Update(func(edit *vault.Edit) error {
		for i := range transfers {
			t := &transfers[i]
			t.key = vault.OwnName(server, t.Key)
			for n := 2; taken[t.key] || !before[t.key] && isOther(edit, t.key, t.value); n++ {
				t.key = vault.OwnName(server, t.Key+"_"+strconv.Itoa(n))
			}
			taken[t.key] = true
			t.was, _ = edit.Value(t.key) // an error means that there is none
			if err := edit.Set(t.key, t.value); err != nil {
				return fmt.Errorf("storing %s: %w", t.key, err)
			}
		}
		return nil
	})
	return transfers, err
}

// takeBack gives the vault back what it had before secrets were moved to it.
func (e *Editor) takeBack(transfers []transfer) error {
	return e.Vault.Update(func(edit *vault.Edit) error {
		for _, t := range transfers {
			err := error(nil)
			if t.was == nil {
				err = edit.Delete(t.key)
			} else {
				err = edit.Set(t.key, t.was)
			}
			if err != nil {
				return fmt.Errorf("giving %s its value back: %w", t.key, err)
			}
		}
		return nil
	})
}

// isOther reports whether the vault has another value under a key.
func isOther(edit *vault.Edit, key string, value *vault.Secret) bool {
	there, err := edit.Value(key)
	return err == nil && !there.Equal(value)
}

// referred are the keys that an entry refers to.
func referred(config *mcpconfig.Config, server string) map[string]bool {
	keys := make(map[string]bool)
	for _, use := range config.Secrets {
		if use.Server == server {
			keys[use.Key] = true
		}
	}
	return keys
}
