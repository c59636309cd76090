// SPDX-License-Identifier: Apache-2.0

// Package edits changes the configuration as a person asks for it: it puts servers
// into the files and takes them out, and moves secrets that would stand there to the
// vault, with references in their place. A change is checked before anything is
// written, the vault is written before the file that refers to it, and what nobody
// asked to be changed stays byte for byte.
package edits

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/garraia/garra/internal/filelock"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

var (
	// ErrExists is returned by [Editor.Add] when there is a server of that name.
	ErrExists = errors.New("there is a server of that name already")
	// ErrUnknown is returned when there is no server of that name in either file.
	ErrUnknown = errors.New("there is no server of that name")
	// ErrField is returned by [Editor.Add] and [Editor.Change] for fields that can't be set,
	// such as one that there is not.
	ErrField = errors.New("the entry can't be changed so")
	// ErrChanged is returned by [Editor.Change] and [Editor.Remove] when the entry isn't the
	// one that was to be changed.
	ErrChanged = errors.New("the entry was changed by someone else")
)

// A Refused change is one whose result is no valid entry.
type Refused struct{ Findings mcpconfig.Findings }

// Error says all that is wrong, the reason first.
func (r *Refused) Error() string {
	texts := make([]string, len(r.Findings))
	for i, f := range r.Findings {
		texts[i] = f.Message
	}
	return strings.Join(texts, "; ")
}

// Advice says what to do about it.
func (r *Refused) Advice() string {
	var texts []string
	for _, f := range r.Findings {
		if f.Fix != "" && !slices.Contains(texts, f.Fix) {
			texts = append(texts, f.Fix)
		}
	}
	return strings.Join(texts, "; ")
}

// A Locked change needs the vault, which can't be had.
type Locked struct {
	What  string // what needs it
	Cause error  // why it can't be had
}

// Error says what needs the vault, and why it can't be had.
func (l *Locked) Error() string { return fmt.Sprintf("%s: %v", l.What, l.Cause) }

// Unwrap returns the cause.
func (l *Locked) Unwrap() error { return l.Cause }

// A Vault is what secrets are moved to.
type Vault interface {
	// Update changes the vault as vault.Vault.Update does.
	Update(change func(*vault.Edit) error) error
	// Usable returns why the vault can't be changed now: vault.ErrNoVault when there is
	// none. It returns nil when it can.
	Usable() error
}

// An Editor changes one configuration. Several may do so at the same time, also in
// several processes.
type Editor struct {
	Dir   string // the configuration folder
	Lock  string // a file that is locked while a change is made
	Vault Vault
	// AllowPlaintext leaves secrets in the files, where there is no vault to move them to.
	AllowPlaintext bool
	// Dry finds out whether a change can be made, and makes none. It is for Remove.
	Dry bool
}

// A Move is a secret that was moved to the vault.
type Move struct {
	Server string
	File   string // base name
	Field  string
	Key    string // in the vault
}

// A Result is what came of a change.
type Result struct {
	Server  *mcpconfig.Server // as it is now; nil when it is gone
	Moved   []Move
	Left    []Move   // secrets that stay in the files, since they are mixed with references; without Key
	Removed []string // keys of the vault
	// Findings are what a person should know about the entry as it is now.
	Findings mcpconfig.Findings

	undo func() error // takes back what was written to the vault; nil when nothing was
}

// Tag identifies the text of an entry, for [Editor.Change] and [Editor.Remove].
func Tag(s *mcpconfig.Server) string { return s.Digest()[:min(len(s.Digest()), 32)] }

// Add makes a server of fields, a JSON object, in mcp.json. It returns ErrExists or a
// *[Refused], *[Locked], or what reading and writing the files did.
func (e *Editor) Add(name string, fields []byte) (*Result, error) {
	return e.change(name, func(s *session) error {
		if s.holds(name) {
			return ErrExists
		}
		s.edited = s.servers
		return asField(s.servers.SetServer(name, fields))
	})
}

// Change sets fields of a server, in the file where it stands. A field that is null is
// removed; others are set as a whole. With a tag, the entry must be the one that it
// identifies. It returns ErrUnknown, ErrChanged, and the errors of Add.
func (e *Editor) Change(name, tag string, fields map[string]json.RawMessage) (*Result, error) {
	return e.change(name, func(s *session) error {
		if err := s.check(name, tag); err != nil {
			return err
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			err := error(nil)
			if value := fields[field]; string(value) == "null" {
				err = s.edited.RemoveField(name, field)
			} else {
				err = s.edited.SetField(name, field, value)
			}
			if err != nil {
				return asField(err)
			}
		}
		return nil
	})
}

// asField is an error of setting a field; one that isn't there to be edited by hand.
func asField(err error) error {
	if err == nil || errors.Is(err, mcpconfig.ErrNotEditable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrField, err)
}

// Remove takes a server out of both files, and its own keys out of the vault. With a
// tag, the entry must be the one that it identifies. It returns ErrUnknown, ErrChanged,
// *[Locked], or what reading and writing the files did.
func (e *Editor) Remove(name, tag string) (*Result, error) {
	result := &Result{}
	err := e.locked(func() error {
		s, err := e.open()
		if err != nil {
			return err
		}
		if err := s.check(name, tag); err != nil {
			return err
		}
		why := e.Vault.Usable()
		if why != nil && !errors.Is(why, vault.ErrNoVault) {
			return &Locked{"removing the server's own secrets", why}
		}
		for _, d := range []*mcpconfig.Document{s.general, s.servers} {
			if d.Has(name) {
				if err := d.RemoveServer(name); err != nil {
					return err
				}
			}
		}
		if e.Dry && why != nil {
			return nil
		}
		if e.Dry { // that nothing is changed is found out with the key that a change needs
			return e.Vault.Update(func(*vault.Edit) error { return nil })
		}
		if err := s.servers.Save(); err != nil { // first: else what the other file hid would come into force
			return err
		}
		if err := s.general.Save(); err != nil || why != nil {
			return err
		}
		return e.Vault.Update(func(edit *vault.Edit) error {
			result.Removed = edit.RemoveServer(name)
			return nil
		})
	})
	return result, err
}

// Import moves the secrets that stand in the files to the vault. Without a vault it
// returns a *[Locked].
func (e *Editor) Import() (*Result, error) {
	result := &Result{}
	err := e.locked(func() error {
		s, err := e.open()
		if err != nil {
			return err
		}
		for _, server := range s.config.Entries() {
			s.edited = s.document(server.Origin.File)
			if err := e.moveAll(s, server, result); err != nil {
				return err
			}
		}
		return errors.Join(s.general.Save(), s.servers.Save())
	})
	return result, err
}

// moveAll moves all secrets of an entry: one of them may have hidden another in the same
// value.
func (e *Editor) moveAll(s *session, server *mcpconfig.Server, result *Result) error {
	for {
		moved, left := len(result.Moved), len(result.Left)
		if err := e.move(s, server, nil, result); err != nil {
			return err
		}
		config, err := s.edited.Config()
		if err != nil || len(result.Moved) == moved {
			return err
		}
		next, ok := config.Entry(server.Name)
		if !ok || len(next.Plaintext()) == 0 {
			return nil
		}
		server, result.Left = next, result.Left[:left] // what is left is found again
	}
}

// change makes a change that leaves a valid entry of that name.
func (e *Editor) change(name string, edit func(*session) error) (*Result, error) {
	result := &Result{}
	err := e.locked(func() (failed error) {
		s, err := e.open()
		if err != nil {
			return err
		}
		before := s.plaintext(name)
		defer func() {
			if failed != nil && result.undo != nil {
				failed = errors.Join(failed, result.undo())
			}
		}()
		if err := edit(s); err != nil {
			return err
		}
		server, err := s.valid(name)
		if err != nil {
			return err
		}
		if err := e.move(s, server, before, result); err != nil {
			return err
		}
		if result.Server, err = s.valid(name); err != nil {
			return err
		}
		if result.Findings, err = s.warnings(name); err != nil {
			return err
		}
		if err := os.MkdirAll(e.Dir, 0o700); err != nil {
			return fmt.Errorf("making the configuration folder: %w", err)
		}
		return s.edited.Save()
	})
	return result, err
}

// locked keeps other editors out while it works.
func (e *Editor) locked(work func() error) error {
	unlock, err := filelock.Lock(e.Lock)
	if err != nil {
		return fmt.Errorf("locking the configuration: %w", err)
	}
	defer unlock()
	return work()
}

// A session is both files while they are changed.
type session struct {
	servers, general *mcpconfig.Document
	config           *mcpconfig.Config   // as it was
	edited           *mcpconfig.Document // the one with the entry
}

// open reads both files.
func (e *Editor) open() (*session, error) {
	s := &session{}
	var err error
	if s.servers, err = mcpconfig.OpenDocument(filepath.Join(e.Dir, mcpconfig.ServersFile)); err != nil {
		return nil, err
	}
	if s.general, err = mcpconfig.OpenDocument(filepath.Join(e.Dir, mcpconfig.GeneralFile)); err != nil {
		return nil, err
	}
	s.config, err = mcpconfig.Load(e.Dir)
	return s, err
}

func (s *session) holds(name string) bool { return s.servers.Has(name) || s.general.Has(name) }

// document is the file of that base name.
func (s *session) document(file string) *mcpconfig.Document {
	if file == mcpconfig.GeneralFile {
		return s.general
	}
	return s.servers
}

// check makes sure that the entry is there, and the one that was meant.
func (s *session) check(name, tag string) error {
	switch {
	case s.general.Has(name):
		s.edited = s.general
	case s.servers.Has(name):
		s.edited = s.servers
	default:
		return ErrUnknown
	}
	if server, ok := s.config.Entry(name); tag != "" && (!ok || Tag(server) != tag) {
		return ErrChanged
	}
	return nil
}

// plaintext are the secrets that stand in the entry before it is changed, by field.
func (s *session) plaintext(name string) map[string]string {
	found := make(map[string]string)
	if server, ok := s.config.Entry(name); ok {
		for _, p := range server.Plaintext() {
			found[p.Field] = p.Before + p.Secret + p.After
		}
	}
	return found
}

// valid returns the entry as it is after the change, or what is wrong with it.
func (s *session) valid(name string) (*mcpconfig.Server, error) {
	config, err := s.edited.Config()
	if err != nil {
		return nil, err
	}
	if server, ok := config.Server(name); ok {
		return server, nil
	}
	var wrong mcpconfig.Findings
	for _, f := range config.Findings {
		if f.Severity == mcpconfig.Error && (f.Server == name || f.Server == "") {
			wrong = append(wrong, f)
		}
	}
	if len(wrong) == 0 {
		return nil, fmt.Errorf("the name %q is none that a server can have", name)
	}
	for _, f := range config.Findings.Of(name) {
		if f.Severity == mcpconfig.Warning { // such as a misspelt field, which may be the reason
			wrong = append(wrong, f)
		}
	}
	return nil, &Refused{wrong}
}

// warnings are what a person should know about the entry after the change.
func (s *session) warnings(name string) (mcpconfig.Findings, error) {
	config, err := s.edited.Config()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(config.Findings.Of(name), func(f mcpconfig.Finding) bool {
		return f.Severity != mcpconfig.Warning
	}), nil
}
