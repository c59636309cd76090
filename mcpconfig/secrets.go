// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"slices"

	"github.com/garraia/garra/internal/advice"
)

// A SecretUse is a reference to a secret in an entry that is in force, also in one with errors.
type SecretUse struct {
	Server   string
	Key      string // KEY of the vault, or STORE:KEY
	Field    string // as it is written in the entry
	Position Position
}

// UsersOf returns the servers whose entries refer to a secret, sorted.
func (c *Config) UsersOf(key string) []string {
	users := []string{}
	for _, use := range c.Secrets {
		if use.Key == key {
			users = append(users, use.Server)
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// Unavailable returns a finding for each reference to a secret that its server can't have: the
// server will not start. Ask returns why, with what its method Advice() string says can be done,
// if it has one; a nil ask stands for no vault.
func (c *Config) Unavailable(ask func(server, key string) error) Findings {
	if ask == nil {
		ask = func(string, string) error { return errNoVault{} }
	}
	var findings Findings
	for _, use := range c.Secrets {
		err := ask(use.Server, use.Key)
		if err == nil {
			continue
		}
		fix := "open the vault, or store the secret in it"
		if advised, ok := advice.Of(err); ok {
			fix = advised
		}
		findings = append(findings, Finding{
			Severity: CodeEnvVaultUnavailable.Severity(), Code: CodeEnvVaultUnavailable,
			File: use.Position.File, Line: use.Position.Line, Column: use.Position.Column, Server: use.Server,
			Message: fmt.Sprintf("%s refers to the secret %q, which is not available: %v; the server will not start",
				use.Field, shorten(use.Key), err),
			Fix: fix,
		})
	}
	return findings
}

// errNoVault is why no secret is available where there is no vault.
type errNoVault struct{}

func (errNoVault) Error() string { return "there is no vault" }

func (errNoVault) Advice() string {
	return "make one with `garra vault init`, or write ${env:NAME} and set NAME for garra"
}
