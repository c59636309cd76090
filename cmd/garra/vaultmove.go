// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/internal/atomicfile"
	"github.com/garraia/garra/internal/edits"
	"github.com/garraia/garra/vault"
)

// maxImport bounds a file that is imported, in bytes.
const maxImport = 32 << 20

func newVaultRekey(g *globals) *cobra.Command {
	file := ""
	c := &cobra.Command{
		Use: "rekey", Short: "Encrypt the vault with another passphrase, or for other recipients", Args: exactArgs(0),
		Long: `Writes the vault for another key: the recipients that config.yml names, when it names
any; else another passphrase, from --new-passphrase-file, or standard input when that
is no terminal, or asked for twice. With --new-passphrase-file it is that passphrase,
whatever config.yml names.

A vault with a passphrase is opened with that, also when config.yml names an identity by
now. A running gateway goes on with what it has read; unlock it before it reads the vault
again.

Exit codes: 4 when the vault can't be opened.`,
		RunE: func(c *cobra.Command, _ []string) error { return g.rekey(c.Context(), file) },
	}
	c.Flags().StringVar(&file, "new-passphrase-file", "", "the `FILE` with the new passphrase")
	return c
}

func (g *globals) rekey(ctx context.Context, file string) error {
	v, err := g.openForRekey(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	key, err := g.nextKey(ctx, v, file)
	if err != nil {
		return err
	}
	if err := v.Rekey(key); err != nil {
		return err
	}
	fmt.Fprintln(g.err, "the vault has another key now; a running gateway needs `garra vault unlock`")
	return nil
}

// openForRekey opens the vault with what config.yml names, or else a passphrase that
// is given: one of the two is the old key.
func (g *globals) openForRekey(ctx context.Context) (*opened, error) {
	v, err := g.openVault(ctx, false)
	if !errors.Is(err, vault.ErrWrongPassphrase) {
		return v, err
	}
	text, missing := g.passphrase(ctx, "old passphrase of the vault: ")
	if missing != nil {
		return nil, err
	}
	key, keyErr := passphraseKey(text)
	if keyErr != nil {
		return nil, keyErr
	}
	config, places, placeErr := g.vaultPlace()
	if placeErr != nil {
		return nil, placeErr
	}
	if len(config.Settings.Vault.Identities) == 0 {
		return nil, err // it was the passphrase that was tried
	}
	old, oldErr := vault.Open(g.vaultOptions(places), key)
	if oldErr != nil {
		return nil, err
	}
	return &opened{old, config, places}, nil
}

// nextKey is the key that the vault is to have.
func (g *globals) nextKey(ctx context.Context, v *opened, file string) (vault.Key, error) {
	if keys := v.config.Settings.Vault; file == "" && len(keys.Identities) > 0 {
		return identityKey(&keys)
	}
	text, err := g.newPassphrase(ctx, file)
	if err != nil {
		return vault.Key{}, err
	}
	return passphraseKey(text)
}

// newPassphrase reads the passphrase that is to take the place of another.
func (g *globals) newPassphrase(ctx context.Context, file string) ([]byte, error) {
	switch {
	case file != "":
		return readPrivate(file)
	case isTerminal(g.in):
		return g.askTwice(ctx, "new passphrase of the vault")
	}
	text, err := readSecret(g.in, maxPassphrase)
	if err == nil && len(text) == 0 {
		err = errors.New("the new passphrase is empty; hand it over on standard input or in --new-passphrase-file")
	}
	return text, err
}

// An exportedSecret is one secret of an export. A file to import may have the value
// alone in its place.
type exportedSecret struct {
	Value  string       `json:"value,omitempty"`
	Base64 []byte       `json:"base64,omitempty"` // in the place of Value for what is no UTF-8
	For    []string     `json:"for,omitempty"`
	Policy vault.Policy `json:"policy,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *exportedSecret) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &e.Value) == nil {
		return nil
	}
	type plain exportedSecret
	return json.Unmarshal(data, (*plain)(e))
}

func newVaultExport(g *globals) *cobra.Command {
	out, reveal := "", false
	c := &cobra.Command{
		Use: "export", Short: "Write all secrets out, unencrypted", Args: exactArgs(0),
		Long: `Writes all secrets as JSON, unencrypted, to --out (which gets mode 0600) or to standard
output: {"KEY": {"value", "for", "policy"}}, with "base64" instead of "value" for what is
no text. garra vault import --from json reads it. It writes to a terminal only with
--reveal.

Exit codes: 4 when the vault can't be opened.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" && isTerminal(g.out) && !reveal {
				return usageError(errors.New("a terminal would show every secret; give --out FILE, or --reveal"))
			}
			v, err := g.openVault(c.Context(), false)
			if err != nil {
				return err
			}
			defer v.Close()
			return g.export(v.Vault, out)
		},
	}
	c.Flags().StringVar(&out, "out", "", "the `FILE` to write")
	c.Flags().BoolVar(&reveal, "reveal", false, "show the secrets on a terminal")
	return c
}

func (g *globals) export(v *vault.Vault, out string) error {
	all := make(map[string]exportedSecret)
	for _, entry := range v.Entries() {
		value, err := v.Value(entry.Name)
		if err != nil {
			return err
		}
		text, err := value.Reveal()
		if err != nil {
			return err
		}
		of := exportedSecret{Value: text, For: entry.For, Policy: entry.Policy}
		if !utf8.ValidString(text) {
			of.Value, of.Base64 = "", []byte(text)
		}
		all[entry.Name] = of
	}
	if out == "" {
		return g.writeJSON(all)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(out, append(data, '\n'))
}

func newVaultImport(g *globals) *cobra.Command {
	o := importOptions{}
	c := &cobra.Command{
		Use: "import [--from json|garraia FILE]", Short: "Take secrets in, from the configuration or a file",
		Args: cobra.MaximumNArgs(1),
		Long: `Takes secrets into the vault: without a file those that stand in mcp.json and
config.yml themselves, as config check finds them (secret.plaintext). Each becomes
mcp.SERVER.NAME, and the file gets a reference in its place; all else in it stays.

--from garraia FILE takes those of GarraIA's vault. Its passphrase is that of this vault,
unless --passphrase-file names another. --from json FILE takes those of an export, or
{"KEY": "VALUE"}; - is standard input. Keys that the vault has are left alone, unless
--replace is given.

Exit codes: 4 when a vault can't be opened.`,
		RunE: func(c *cobra.Command, args []string) error { return g.importSecrets(c.Context(), args, &o) },
	}
	c.Flags().StringVar(&o.from, "from", "", "the `KIND` of the file: json or garraia")
	c.Flags().StringVar(&o.passphraseFile, "passphrase-file", "", "the `FILE` with the passphrase of GarraIA's vault")
	c.Flags().BoolVar(&o.replace, "replace", false, "replace keys that the vault has")
	return c
}

type importOptions struct {
	from           string
	passphraseFile string
	replace        bool
}

func (g *globals) importSecrets(ctx context.Context, args []string, o *importOptions) error {
	switch {
	case len(args) == 0 && o.from == "":
		return g.importPlaintext(ctx)
	case len(args) != 1 || o.from != "json" && o.from != "garraia":
		return usageError(errors.New("say what is imported: --from json FILE, --from garraia FILE, or neither " +
			"for what stands in the configuration"))
	}
	data, err := g.readImport(args[0])
	if err != nil {
		return err
	}
	defer clear(data)
	v, err := g.openVault(ctx, false)
	if err != nil {
		return err
	}
	defer v.Close()
	read := readExported
	if o.from == "garraia" {
		read = func(data []byte) (map[string]taken, error) { return g.readGarraIA(ctx, data, o.passphraseFile) }
	}
	secrets, err := read(data)
	if err != nil {
		return fmt.Errorf("reading %s: %w", args[0], err)
	}
	kept, err := take(v.Vault, secrets, o.replace)
	if err != nil {
		return err
	}
	fmt.Fprintf(g.err, "imported %s\n", count(len(secrets)-kept, "secret"))
	if kept > 0 {
		fmt.Fprintf(g.err, "left %s alone that the vault has already; --replace replaces them\n", count(kept, "key"))
	}
	return g.applied(ctx)
}

// importPlaintext moves the secrets that stand in the configuration to the vault.
func (g *globals) importPlaintext(ctx context.Context) error {
	result, err := g.ownEditor(ctx, false, (*edits.Editor).Import)
	if err != nil {
		return err
	}
	g.printMoves(result)
	fmt.Fprintf(g.err, "moved %s to the vault\n", count(len(result.Moved), "secret"))
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return err
	}
	if _, err := client.RefreshVault(ctx); err != nil {
		return fmt.Errorf("the secrets are moved; telling the gateway: %w", err)
	}
	return nil
}

// readImport reads the file of an import; - is standard input.
func (g *globals) readImport(name string) ([]byte, error) {
	in := g.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	if err == nil && len(data) > maxImport {
		err = fmt.Errorf("%s is larger than %d MiB", filepath.Base(name), maxImport>>20)
	}
	return data, err
}

// A taken secret comes from a file.
type taken struct {
	value  *vault.Secret
	users  []string
	policy vault.Policy
}

// readExported reads what export writes.
func readExported(data []byte) (map[string]taken, error) {
	var all map[string]exportedSecret
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("it is no JSON object of keys and secrets: %w", quietly(err))
	}
	secrets := make(map[string]taken)
	for name, of := range all {
		if of.Value == "" && len(of.Base64) == 0 {
			return nil, fmt.Errorf("the key %q has no value", name)
		}
		sealed, err := vault.Seal(append([]byte(of.Value), of.Base64...))
		if err != nil {
			return nil, err
		}
		secrets[name] = taken{sealed, of.For, of.Policy}
	}
	return secrets, nil
}

// quietly is an error of decoding without what it quotes, which may be a secret.
func quietly(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("it is broken at byte %d", syntax.Offset)
	}
	return errors.New("a value is neither a text nor an object with one")
}

// readGarraIA reads GarraIA's vault.
func (g *globals) readGarraIA(ctx context.Context, data []byte, file string) (map[string]taken, error) {
	text, err := g.garraiaPassphrase(ctx, file)
	if err != nil {
		return nil, asLocked(err)
	}
	sealed, err := vault.Seal(text)
	if err != nil {
		return nil, err
	}
	values, err := vault.FromGarraIA(data, sealed)
	if err != nil {
		return nil, asLocked(err)
	}
	secrets := make(map[string]taken)
	for name, value := range values {
		secrets[name] = taken{value: value}
	}
	return secrets, nil
}

func (g *globals) garraiaPassphrase(ctx context.Context, file string) ([]byte, error) {
	if file != "" {
		return readPrivate(file)
	}
	return g.passphrase(ctx, "passphrase of GarraIA's vault: ")
}

// dress gives a secret the users and the policy that its file names; those that it has
// already stay where the file doesn't.
func (t *taken) dress(e *vault.Edit, name string) error {
	if t.users != nil {
		if err := e.Share(name, slices.Clone(t.users)); err != nil {
			return err
		}
	}
	if t.policy == vault.PolicyDefault {
		return nil
	}
	return e.SetPolicy(name, t.policy)
}

// take stores secrets, and returns how many it left alone since the vault has them.
func take(v *vault.Vault, secrets map[string]taken, replace bool) (kept int, err error) {
	err = v.Update(func(e *vault.Edit) error {
		kept = 0
		for name, secret := range secrets {
			if _, there := e.Entry(name); there && !replace {
				kept++
				continue
			}
			if err := e.Set(name, secret.value); err != nil {
				return fmt.Errorf("importing %q: %w", name, err)
			}
			if err := secret.dress(e, name); err != nil {
				return fmt.Errorf("importing %q: %w", name, err)
			}
		}
		return nil
	})
	return kept, err
}
