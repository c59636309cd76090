// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/term"

	"github.com/garraia/garra/internal/ownenv"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// Where the vault's passphrase comes from, the first first.
const (
	passphraseVariable = "GARRAIA_VAULT_PASSPHRASE"
	passphraseFile     = "GARRAIA_VAULT_PASSPHRASE_FILE"
	passphraseCred     = "garraia-vault-passphrase" // of systemd, see systemd.exec(5), CREDENTIALS
	oldVariable        = "GarraIA_VAULT_PASSPHRASE" // GarraIA's, before it was renamed
)

// vaultPrompt is what a person is asked for the vault's passphrase with.
const vaultPrompt = "passphrase of the vault: "

// maxPassphrase bounds a passphrase, in bytes.
const maxPassphrase = 64 << 10

// takePassphrase takes the passphrase out of the environment, so that nothing that
// garra starts has it and nothing shows it. It returns nil for none.
func takePassphrase() (given []byte) {
	for _, name := range []string{passphraseVariable, oldVariable} {
		text, _ := ownenv.Take(name)
		if len(given) == 0 && len(text) > 0 { // an empty one is none
			given = text
		}
	}
	return given
}

// errNoPassphrase is the error of what needs a passphrase that nobody has given.
var errNoPassphrase = errors.New("nobody has given the vault's passphrase: set " + passphraseFile +
	" or " + passphraseVariable)

// A passphraseError is why the passphrase that somebody has given can't be had.
type passphraseError struct{ cause error }

// Error implements error.
func (e *passphraseError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *passphraseError) Unwrap() error { return e.cause }

// passphrase returns the passphrase that was given, else the one that a person types
// at a prompt; "" asks nobody. The error is errNoPassphrase when there is none.
func (g *globals) passphrase(ctx context.Context, prompt string) ([]byte, error) {
	text, err := g.readPassphrase()
	if errors.Is(err, errNoPassphrase) && prompt != "" && g.canAsk() {
		return g.ask(ctx, prompt)
	}
	return text, err
}

// readPassphrase returns the passphrase from the first source that has one. The error
// is errNoPassphrase when there is none.
func (g *globals) readPassphrase() (text []byte, err error) {
	if g.given != nil {
		return bytes.Clone(g.given), nil
	}
	if path := os.Getenv(passphraseFile); path != "" {
		if text, err = readPrivate(path); err != nil {
			err = &passphraseError{fmt.Errorf("%s: %w", passphraseFile, err)}
		}
		return text, err
	}
	if folder := os.Getenv("CREDENTIALS_DIRECTORY"); folder != "" {
		path := filepath.Join(folder, passphraseCred)
		if _, err := os.Stat(path); err == nil {
			if text, err = readPrivate(path); err != nil {
				err = &passphraseError{err}
			}
			return text, err
		}
	}
	return nil, errNoPassphrase
}

// readPrivate reads a file that others must not be able to read.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the passphrase: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("reading the passphrase: others can read %s; run `chmod 600 %s`", path, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the passphrase: %w", err)
	}
	defer file.Close()
	text, err := readSecret(file, maxPassphrase)
	if err != nil {
		return nil, fmt.Errorf("reading the passphrase from %s: %w", path, err)
	}
	if len(text) == 0 {
		return nil, fmt.Errorf("reading the passphrase: %s is empty", path)
	}
	return text, nil
}

// readSecret reads all of a stream, without the one line end that editors and echo
// put behind a text.
func readSecret(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		clear(text)
		return nil, fmt.Errorf("it is larger than %d bytes", most)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

// canAsk reports whether a person can be asked for a secret.
func (g *globals) canAsk() bool { return isTerminal(g.in) && isTerminal(g.err) }

// ask asks a person for a secret, which the terminal doesn't show.
func (g *globals) ask(ctx context.Context, prompt string) ([]byte, error) {
	in, ok := g.in.(interface{ Fd() uintptr })
	if !ok {
		return nil, errNoPassphrase
	}
	fmt.Fprint(g.err, prompt)
	defer fmt.Fprintln(g.err)
	type answer struct {
		text []byte
		err  error
	}
	before, stateErr := term.GetState(int(in.Fd()))
	answers := make(chan answer, 1)
	go func() { // ends with the line, or with the program
		text, err := term.ReadPassword(int(in.Fd()))
		answers <- answer{text, err}
	}()
	select {
	case got := <-answers:
		return got.text, got.err
	case <-ctx.Done():
		if stateErr == nil {
			_ = term.Restore(int(in.Fd()), before) // the echo is off
		}
		return nil, context.Cause(ctx)
	}
}

// askTwice asks for a new secret until both answers are the same.
func (g *globals) askTwice(ctx context.Context, what string) ([]byte, error) {
	for {
		first, err := g.ask(ctx, what+": ")
		if err != nil {
			return nil, err
		}
		second, err := g.ask(ctx, "again: ")
		if err != nil {
			return nil, err
		}
		same := bytes.Equal(first, second)
		clear(second)
		switch {
		case same && len(first) > 0:
			return first, nil
		case same:
			fmt.Fprintln(g.err, "garra: it is empty")
		default:
			fmt.Fprintln(g.err, "garra: the two are not the same")
		}
		clear(first)
	}
}

// vaultKey returns what opens the vault: the identities that the configuration names,
// else the passphrase, which a person may be asked for.
func (g *globals) vaultKey(ctx context.Context, settings *mcpconfig.Settings, ask bool) (vault.Key, error) {
	if keys := settings.Vault; len(keys.Identities) > 0 || len(keys.Recipients) > 0 {
		return identityKey(&keys)
	}
	prompt := ""
	if ask {
		prompt = vaultPrompt
	}
	text, err := g.passphrase(ctx, prompt)
	if err != nil {
		return vault.Key{}, err
	}
	return passphraseKey(text)
}

// passphraseKey is the key of a passphrase, which is taken over.
func passphraseKey(text []byte) (vault.Key, error) {
	sealed, err := vault.Seal(text)
	if err != nil {
		return vault.Key{}, err
	}
	return vault.Passphrase(sealed), nil
}

// identityKey is the key that the section vault of config.yml describes.
func identityKey(keys *mcpconfig.VaultKeys) (vault.Key, error) {
	if len(keys.Identities) == 0 {
		return vault.Key{}, errors.New("config.yml names recipients of the vault and no identity that opens it; " +
			"add vault.identity")
	}
	files := make([]string, len(keys.Identities))
	for i, file := range keys.Identities {
		files[i] = file
		if rest, ok := strings.CutPrefix(file, "~"+string(filepath.Separator)); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return vault.Key{}, fmt.Errorf("finding the identity %s: %w", file, err)
			}
			files[i] = filepath.Join(home, rest)
		}
	}
	return vault.Identities(files, keys.Recipients)
}
