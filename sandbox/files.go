// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// A File is one that a server finds when it starts, and that nobody but its user can
// read.
type File struct {
	Name    string // in Files.Dir
	Content []byte
}

// Files are a server's own: a folder, which is made before the server starts and
// removed with all that is in it when its tree is gone.
type Files struct {
	Dir string // absolute, and not there yet
	All []File // empty means that there is no folder either
}

// errFileName says no more: the name is an entry's.
var errFileName = errors.New("a file for the server has a name that no file can have, or its folder no absolute path")

// check refuses what would be written elsewhere.
func (f *Files) check() error {
	for _, file := range f.All {
		if !filepath.IsAbs(f.Dir) || file.Name != filepath.Base(file.Name) || strings.Contains(file.Name, "\x00") ||
			file.Name == "." || file.Name == ".." {
			return errFileName
		}
	}
	return nil
}

// write makes the folder with its files, or leaves nothing.
func (f *Files) write() error {
	if len(f.All) == 0 {
		return nil
	}
	if err := os.Mkdir(f.Dir, 0o700); err != nil {
		return err
	}
	for _, file := range f.All {
		if err := os.WriteFile(filepath.Join(f.Dir, file.Name), file.Content, 0o400); err != nil {
			f.remove()
			return err
		}
	}
	return nil
}

// forget overwrites what the files hold, in memory.
func (f *Files) forget() {
	for _, file := range f.All {
		clear(file.Content)
	}
}

// remove removes the folder. Whoever still has a file open can go on reading it.
func (f *Files) remove() {
	if len(f.All) > 0 {
		// An error leaves what only the user can read, and there is nobody to tell.
		_ = os.RemoveAll(f.Dir)
	}
}
