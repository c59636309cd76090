// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/redact"
	"github.com/garraia/garra/vault"
)

// maxSecretValue bounds a value that is stored, in bytes.
const maxSecretValue = 1 << 20

func newVault(g *globals) *cobra.Command {
	c := group("vault", "Keep secrets that servers get by reference",
		newVaultInit(g), newVaultSet(g), newVaultShare(g), newVaultList(g), newVaultDelete(g), newVaultRekey(g),
		newVaultImport(g), newVaultExport(g), newVaultUnlock(g))
	c.Long = `The vault is the file vault.age in the configuration folder: secrets that entries
refer to as vault:KEY. It is encrypted with a passphrase, or for the recipients that
config.yml names, and can be opened with the standard age command.

The passphrase is taken from GARRAIA_VAULT_PASSPHRASE, else the file that
GARRAIA_VAULT_PASSPHRASE_FILE names, else the systemd credential
garraia-vault-passphrase, else asked for on a terminal.

A server may use its own keys, mcp.SERVER.NAME, and those that are shared with it.`
	return c
}

// vaultOptions says where the vault of a configuration is.
func (g *globals) vaultOptions(places place.Places) vault.Options {
	return vault.Options{
		Path: places.Vault, Record: filepath.Join(places.RunDir, "vault.json"), WorkFactor: g.workFactor,
	}
}

// lockMemory makes ready the memory that secrets are kept in.
func lockMemory(settings *mcpconfig.Settings) error {
	if settings.Vault.Unlocked {
		return vault.LockMemory(vault.Unlocked)
	}
	return vault.LockMemory()
}

// An opened vault, and what is around it.
type opened struct {
	*vault.Vault
	config *mcpconfig.Config
	places place.Places
}

// openVault opens the vault of the configuration, for a command about it.
func (g *globals) openVault(ctx context.Context, rollback bool) (*opened, error) {
	config, places, err := g.vaultPlace()
	if err != nil {
		return nil, err
	}
	options := g.vaultOptions(places)
	options.AcceptRollback = rollback
	if there, err := vault.Exists(options.Path); err == nil && !there {
		return nil, fmt.Errorf("there is no vault at %s; make one with `garra vault init`", options.Path)
	}
	key, err := g.vaultKey(ctx, &config.Settings, true)
	if err != nil {
		return nil, asLocked(err)
	}
	v, err := vault.Open(options, key)
	if err != nil {
		return nil, asLocked(err)
	}
	return &opened{v, config, places}, nil
}

// vaultPlace loads the configuration and makes ready what a vault needs.
func (g *globals) vaultPlace() (*mcpconfig.Config, place.Places, error) {
	places, err := g.places()
	if err != nil {
		return nil, places, err
	}
	config, err := g.config()
	if err != nil {
		return nil, places, err
	}
	if err := places.Make(); err != nil {
		return nil, places, err
	}
	return config, places, lockMemory(&config.Settings)
}

// asLocked gives an error the exit code of a vault that could not be opened, when it
// means that: here or in the running gateway.
func asLocked(err error) error {
	_, unreadable := errors.AsType[*passphraseError](err)
	refused, ok := errors.AsType[*adminapi.Error](err)
	locked := ok && refused.Code == adminapi.CodeVaultLocked
	if locked || unreadable || errors.Is(err, vault.ErrWrongPassphrase) || errors.Is(err, errNoPassphrase) {
		return &exitError{exitLocked, err}
	}
	return err
}

// applied has the running gateway, if there is one, use what was written, and says
// which servers that restarts.
func (g *globals) applied(ctx context.Context) error {
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return err
	}
	restarted, err := client.RefreshVault(ctx)
	if err != nil { // what was asked for is done
		fmt.Fprintf(g.err, "the vault is written, and the gateway goes on as before: %s\n", printable(err.Error()))
		return nil
	}
	g.sayRestarted(restarted)
	return nil
}

// sayRestarted names the servers that the gateway ends for what has changed.
func (g *globals) sayRestarted(servers []string) {
	if len(servers) > 0 {
		fmt.Fprintf(g.err, "restarting, since they use it: %s\n", printable(strings.Join(servers, ", ")))
	}
}

func newVaultInit(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Make an empty vault", Args: exactArgs(0),
		Long: `Makes an empty vault. Its passphrase is the one that is given (see garra vault --help),
or asked for twice; with vault.recipients and vault.identity in config.yml it has none.

Exit codes: 1 when there is a vault already, 4 when no passphrase is given.`,
		RunE: func(c *cobra.Command, _ []string) error {
			config, places, err := g.vaultPlace()
			if err != nil {
				return err
			}
			options := g.vaultOptions(places)
			if there, err := vault.Exists(options.Path); err == nil && there {
				return fmt.Errorf("there is a vault at %s already", options.Path)
			}
			key, err := g.newVaultKey(c.Context(), &config.Settings)
			if err != nil {
				return asLocked(err)
			}
			v, err := vault.Create(options, key)
			if err != nil {
				return err
			}
			v.Close()
			_, err = fmt.Fprintln(g.err, "made "+options.Path)
			return err
		},
	}
}

// newVaultKey is the key of a vault that doesn't exist yet.
func (g *globals) newVaultKey(ctx context.Context, settings *mcpconfig.Settings) (vault.Key, error) {
	key, err := g.vaultKey(ctx, settings, false)
	if !errors.Is(err, errNoPassphrase) || !g.canAsk() {
		return key, err
	}
	text, err := g.askTwice(ctx, "passphrase for the vault")
	if err != nil {
		return key, err
	}
	return passphraseKey(text)
}

type vaultSetOptions struct {
	file   string
	users  []string
	policy string
}

func newVaultSet(g *globals) *cobra.Command {
	o := vaultSetOptions{}
	c := &cobra.Command{
		Use: "set KEY", Short: "Store a secret", Args: exactArgs(1), ValidArgsFunction: g.usedKeys,
		Long: `Stores a secret: from --file, from standard input when that is no terminal, else asked
for. One line end behind it is left out. Nothing takes it from the command line, which
others can read.

A key of the form mcp.SERVER.NAME is that server's own. Others are shared by name with
--for. The running gateway uses the value at once, and restarts the servers that use it.

Exit codes: 4 when the vault can't be opened.`,
		Example: `  garra vault set mcp.github.TOKEN
  garra vault set mcp.github.TOKEN < token.txt
  garra vault set team.key --for github,jira`,
		RunE: func(c *cobra.Command, args []string) error { return g.setSecret(c, args[0], &o) },
	}
	c.Flags().StringVar(&o.file, "file", "", "the `FILE` that holds the value")
	c.Flags().StringSliceVar(&o.users, "for", nil, "the `SERVERS` that it is shared with, instead of those so far")
	c.Flags().StringVar(&o.policy, "policy", "", "the `POLICY` for answers that hold it: redact takes it out, "+
		"block keeps the whole answer back")
	return c
}

func (g *globals) setSecret(c *cobra.Command, key string, o *vaultSetOptions) error {
	if err := vault.CheckName(key); err != nil {
		return usageError(err)
	}
	policy := vault.Policy(o.policy)
	if policy != vault.PolicyDefault && policy != vault.PolicyRedact && policy != vault.PolicyBlock {
		return usageError(fmt.Errorf("--policy %q is neither redact nor block", o.policy))
	}
	ctx := c.Context()
	v, err := g.openVault(ctx, false)
	if err != nil {
		return err
	}
	defer v.Close()
	text, err := g.readValue(ctx, key, o.file)
	if err != nil {
		return err
	}
	weak := redact.Weak(string(text))
	value, err := vault.Seal(text)
	if err != nil {
		return err
	}
	err = v.Update(func(e *vault.Edit) error {
		if err := e.Set(key, value); err != nil {
			return err
		}
		if c.Flags().Changed("policy") {
			if err := e.SetPolicy(key, policy); err != nil {
				return err
			}
		}
		if c.Flags().Changed("for") {
			return e.Share(key, o.users)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(g.err, "stored %s; %s\n", key, v.prospects(key))
	if weak != "" {
		fmt.Fprintf(g.err, "note that the value %s\n", weak)
	}
	g.sayUnknown(v, o.users)
	return g.applied(ctx)
}

// sayUnknown names those of some servers that the configuration doesn't have.
func (g *globals) sayUnknown(v *opened, servers []string) {
	for _, name := range servers {
		if _, ok := v.config.Entry(name); !ok {
			fmt.Fprintf(g.err, "note that there is no server %q\n", name)
		}
	}
}

// prospects says who uses a key, or what is still needed for that.
func (o *opened) prospects(key string) string {
	entry, _ := o.Entry(key)
	owner, _, owned := vault.Owner(key)
	users := o.config.UsersOf(key)
	unshared := slices.DeleteFunc(slices.Clone(users), entry.Allows)
	switch {
	case len(unshared) > 0:
		return fmt.Sprintf("%s may not use it yet: share it with `garra vault share %s --for %s`",
			printable(strings.Join(unshared, ", ")), key, strings.Join(append(unshared, entry.For...), ","))
	case len(users) > 0:
		return "used by " + printable(strings.Join(users, ", "))
	case !owned && len(entry.For) == 0:
		return fmt.Sprintf("no server may use it yet: share it with `garra vault share %s --for SERVER`", key)
	case owned && len(entry.For) == 0:
		return fmt.Sprintf("the server %s gets it where its entry says vault:%s", owner, key)
	}
	return "who may use it gets it where an entry says vault:" + key
}

// readValue reads the value of a key, which is not empty.
func (g *globals) readValue(ctx context.Context, key, file string) (text []byte, err error) {
	switch {
	case file == "" && isTerminal(g.in):
		text, err = g.ask(ctx, "value of "+key+": ")
	case file == "", file == "-":
		text, err = readSecret(g.in, maxSecretValue)
	default:
		text, err = readValueFile(file)
	}
	if err == nil && len(text) == 0 {
		err = errors.New("it is empty; hand it over on standard input or in --file")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the value of %s: %w", key, err)
	}
	return text, nil
}

func readValueFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readSecret(file, maxSecretValue)
}

func newVaultShare(g *globals) *cobra.Command {
	var users []string
	c := &cobra.Command{
		Use: "share KEY --for SERVERS", Short: "Say which servers may use a secret, besides its owner",
		Args: exactArgs(1), ValidArgsFunction: g.usedKeys,
		Long: `Says which servers may use a secret, besides the one whose own it is. They take the
place of those so far; --for "" takes it from all.

Exit codes: 1 when there is no such key, 4 when the vault can't be opened.`,
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("for") {
				return usageError(errors.New("say who may use it with --for SERVERS"))
			}
			said := args[0] + " is shared with nobody now"
			if len(users) > 0 {
				said = args[0] + " is shared with " + printable(strings.Join(users, ", "))
			}
			if config, err := g.config(); err == nil {
				g.sayUnknown(&opened{config: config}, users)
			}
			return g.editVault(c.Context(), said, func(e *vault.Edit) error { return e.Share(args[0], users) })
		},
	}
	c.Flags().StringSliceVar(&users, "for", nil, "the `SERVERS`, separated by commas")
	return c
}

// editVault changes the vault, says so, and has the running gateway follow.
func (g *globals) editVault(ctx context.Context, said string, change func(*vault.Edit) error) error {
	v, err := g.openVault(ctx, false)
	if err != nil {
		return err
	}
	defer v.Close()
	if err := v.Update(change); err != nil {
		return err
	}
	fmt.Fprintln(g.err, said)
	return g.applied(ctx)
}

func newVaultDelete(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "delete KEY", Short: "Delete a secret", Args: exactArgs(1), ValidArgsFunction: g.usedKeys,
		Long: `Deletes a secret. Servers that use it are stopped, and start again when it is back.

Exit codes: 1 when there is no such key, 4 when the vault can't be opened.`,
		RunE: func(c *cobra.Command, args []string) error {
			return g.editVault(c.Context(), "deleted "+args[0], func(e *vault.Edit) error { return e.Delete(args[0]) })
		},
	}
}

// A vaultLine is one secret of `vault list`.
type vaultLine struct {
	Name   string     `json:"name"`
	UsedBy []string   `json:"used_by"`
	SetAt  *time.Time `json:"set_at"`
	For    []string   `json:"for"`
	Policy string     `json:"policy"`
}

func newVaultList(g *globals) *cobra.Command {
	asJSON, rollback := false, false
	c := &cobra.Command{
		Use: "list", Short: "List the secrets by name, and who uses them", Args: exactArgs(0),
		Long: `Lists the names of the secrets, which entries refer to each, when it was set and with
whom it is shared; never a value.

A vault that is older than one that was seen before is refused: somebody may have put it
back. --accept-rollback takes it, when that was you.

Exit codes: 4 when the vault can't be opened.`,
		RunE: func(c *cobra.Command, _ []string) error {
			v, err := g.openVault(c.Context(), rollback)
			if err != nil {
				return err
			}
			defer v.Close()
			lines := g.vaultLines(c.Context(), v)
			if asJSON {
				return g.writeJSON(map[string]any{"keys": lines})
			}
			return g.printVault(lines)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"keys": [{"name", "used_by", "set_at", "for", "policy"}]}`)
	c.Flags().BoolVar(&rollback, "accept-rollback", false, "take a vault that is older than it was")
	return c
}

// users are the servers that refer to a key, in their entries or in what they were
// started with, such as an env file.
func (g *globals) users(ctx context.Context, v *opened) func(key string) []string {
	running := make(map[string][]string)
	client, err := g.running(ctx)
	if client != nil && err == nil {
		list, _ := client.List(ctx) // without it there is what the files say
		for _, server := range list.Servers {
			detail, _ := client.Detail(ctx, server.Name, false)
			for _, key := range detail.Secrets {
				running[key] = append(running[key], server.Name)
			}
		}
	}
	return func(key string) []string {
		all := append(v.config.UsersOf(key), running[key]...)
		slices.Sort(all)
		return slices.Compact(all)
	}
}

func (g *globals) vaultLines(ctx context.Context, v *opened) []vaultLine {
	lines, users := []vaultLine{}, g.users(ctx, v)
	for _, entry := range v.Entries() {
		line := vaultLine{
			Name: entry.Name, UsedBy: users(entry.Name), For: append([]string{}, entry.For...),
			Policy: string(entry.Policy),
		}
		if line.Policy == "" {
			line.Policy = string(vault.PolicyRedact)
		}
		if !entry.SetAt.IsZero() {
			line.SetAt = &entry.SetAt
		}
		lines = append(lines, line)
	}
	return lines
}

func (g *globals) printVault(lines []vaultLine) error {
	t := g.table("KEY", "SET", "USED BY", "SHARED WITH")
	for _, line := range lines {
		set := "-"
		if line.SetAt != nil {
			set = line.SetAt.Local().Format(time.DateTime)
		}
		t.row(line.Name, set, strings.Join(line.UsedBy, ","), strings.Join(line.For, ","))
	}
	return t.flush()
}

func newVaultUnlock(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "unlock", Short: "Open the vault of the running gateway", Args: exactArgs(0),
		Long: `Opens the vault of the running gateway, whose servers that wait for it start then.

Exit codes: 1 when no gateway runs, 4 when the passphrase is wrong or none is given.`,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.running(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				return fmt.Errorf("%w; start it with `garra serve`", adminapi.ErrNotRunning)
			}
			text, err := g.unlockingPassphrase(c.Context())
			if err != nil {
				return asLocked(err)
			}
			restarted, err := client.UnlockVault(c.Context(), text)
			if err != nil {
				return asLocked(err)
			}
			fmt.Fprintln(g.err, "the vault is open; servers that wait for it start")
			g.sayRestarted(restarted)
			return nil
		},
	}
}

// unlockingPassphrase is the passphrase for a running gateway; nil where config.yml
// names identities, which that has itself.
func (g *globals) unlockingPassphrase(ctx context.Context) ([]byte, error) {
	config, err := g.config()
	if err != nil {
		return nil, err
	}
	if len(config.Settings.Vault.Identities) > 0 {
		return nil, nil
	}
	return g.passphrase(ctx, vaultPrompt)
}

// usedKeys completes the keys of the vault that entries refer to.
func (g *globals) usedKeys(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	config, err := g.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys []string
	for _, use := range config.Secrets {
		if !strings.Contains(use.Key, ":") {
			keys = append(keys, use.Key)
		}
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}
