// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/garraia/garra/internal/atomicfile"
)

var (
	// ErrNoServer is returned by the edits of a [Document] when the file has no entry of that
	// name, or has it twice.
	ErrNoServer = errors.New("no such server in the file")
	// ErrServerExists is returned by [Document.RenameServer] when the new name is taken.
	ErrServerExists = errors.New("the file has a server of that name")
	// ErrNotEditable is returned by the edits of a [Document] when the text can't be changed
	// without changing something else, as with a value that other places share by a YAML alias.
	// A person has to edit the file then.
	ErrNotEditable = errors.New("the text can't be changed there safely")
)

// ConflictError is returned by [Document.Save] when the file is not what it was when the
// document was opened. Nothing is written then.
type ConflictError struct {
	Path string
}

// Error says which file it is.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("saving %s: the file was changed by someone else", filepath.Base(e.Path))
}

// FileError is returned by [OpenDocument] for a file that can't be parsed, which is therefore
// never written.
type FileError struct {
	Path    string
	Finding Finding // why, and where
}

// Error says where the file is broken, and how.
func (e *FileError) Error() string {
	return fmt.Sprintf("editing %s: %s", e.Finding.Position(), e.Finding.Message)
}

// Document is the text of mcp.json or config.yml while it is edited. Edits change what they
// must and leave all other bytes as they are: comments, order, indentation, unknown keys, line
// ends, byte order mark. An edit that fails changes nothing. Nothing is written before Save.
//
// A Document is for one goroutine.
type Document struct {
	src   *source
	saved string // hash of the file when it was read or saved; empty when there was none
}

// OpenDocument reads the file at path, whose name decides whether it is YAML or JSON. A file
// that doesn't exist gives an empty document, which Save creates. For one that can't be parsed
// it returns a [*FileError].
func OpenDocument(path string) (*Document, error) {
	l := newLoader()
	s := l.read(path)
	if len(l.findings) > 0 {
		return nil, &FileError{Path: path, Finding: l.findings[0]}
	}
	d := &Document{src: s, saved: s.hash}
	if !s.exists {
		if err := d.replace([]byte(emptyText(s.name))); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// emptyText is what a new file starts as.
func emptyText(name string) string {
	if isYAML(name) {
		return ""
	}
	return "{\n  \"mcpServers\": {}\n}\n"
}

// Path returns the path that the document was opened with.
func (d *Document) Path() string { return d.src.path }

// Bytes returns the document's present text.
func (d *Document) Bytes() []byte {
	if d.src.bom {
		return slices.Concat([]byte(bom), d.src.data)
	}
	return slices.Clone(d.src.data)
}

// Hash returns the fingerprint of the file as it was when it was opened or last saved, or ""
// when there was no file. It equals [File.Hash] of the same contents.
func (d *Document) Hash() string { return d.saved }

// Changed reports whether there is something to save.
func (d *Document) Changed() bool {
	untouched := d.saved == "" && string(d.src.data) == emptyText(d.src.name) // there is no file, and need not be
	return d.src.hash != d.saved && !untouched
}

// Has reports whether the file has an entry of that name, valid or not.
func (d *Document) Has(server string) bool { return d.section().member(server) != nil }

// Config returns what [Load] would return for the folder if the document were saved now.
func (d *Document) Config() (*Config, error) {
	return loadFolder(filepath.Dir(d.src.path), d.src)
}

// Save writes the document to its file, atomically and with mode 0600 or less, and returns a
// [*ConflictError] when the file has changed since it was read. A document without changes is
// not written.
func (d *Document) Save() error {
	if !d.Changed() {
		return nil
	}
	err := atomicfile.Replace(d.src.path, d.Bytes(), func(current []byte, exists bool) error {
		if hash := hashOf(current); exists != (d.saved != "") || exists && hash != d.saved {
			return &ConflictError{Path: d.src.path}
		}
		return nil
	})
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return conflict
	}
	if err != nil {
		return fmt.Errorf("saving %s: %w", d.src.name, err)
	}
	d.saved = d.src.hash
	return nil
}

// sectionKey is the key under which the file's servers stand.
func (d *Document) sectionKey() string {
	switch {
	case isYAML(d.src.name):
		return "mcp"
	case d.src.root.member("mcpServers") == nil && d.src.root.member("servers") != nil:
		return "servers"
	}
	return "mcpServers"
}

// section returns the map of servers, or nil when there is none.
func (d *Document) section() *node { return d.src.root.get(d.sectionKey()) }

// SetServer makes fields, a JSON object, the whole entry of a server, new or not. Fields that
// are not garra's are kept as well. It doesn't check the entry; see [Document.Config].
func (d *Document) SetServer(server string, fields []byte) error {
	value, err := parseValue(fields)
	if err != nil {
		return fmt.Errorf("setting server %q: %w", server, err)
	}
	if value.kind != mapNode {
		return fmt.Errorf("setting server %q: the entry is not a JSON object", server)
	}
	if err := d.set([]string{d.sectionKey(), server}, value); err != nil {
		return fmt.Errorf("setting server %q: %w", server, err)
	}
	return nil
}

// RemoveServer removes a server's entry.
func (d *Document) RemoveServer(server string) error {
	if err := d.checkServer(server); err != nil {
		return fmt.Errorf("removing server %q: %w", server, err)
	}
	if err := d.remove([]string{d.sectionKey(), server}); err != nil {
		return fmt.Errorf("removing server %q: %w", server, err)
	}
	return nil
}

// RenameServer gives a server's entry another name, in its place.
func (d *Document) RenameServer(server, name string) error {
	err := d.checkServer(server)
	if err == nil && d.Has(name) {
		err = ErrServerExists
	}
	if err == nil {
		err = d.rename([]string{d.sectionKey(), server}, name)
	}
	if err != nil {
		return fmt.Errorf("renaming server %q to %q: %w", server, name, err)
	}
	return nil
}

// checkServer returns ErrNoServer unless the file has exactly one entry of that name.
func (d *Document) checkServer(server string) error {
	n := 0
	for _, m := range d.section().children() {
		if m.key == server {
			n++
		}
	}
	if n != 1 {
		return ErrNoServer
	}
	return nil
}
