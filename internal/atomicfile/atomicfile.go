// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces a file's contents in one step: a reader sees the old bytes or
// the new ones, never a mixture, also after a crash. The bytes go to a temporary file in the
// same folder, are flushed to the disk, and are renamed over the target (rename(2)).
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxMode is the widest permission a written file has: its owner may read and write it.
const maxMode fs.FileMode = 0o600

// ErrNotRegular is returned by [Write] and [Replace] when the target exists and is a folder,
// a pipe, a socket or a device: renaming over such a thing would destroy it.
var ErrNotRegular = errors.New("not a regular file")

// Write replaces the contents of the file at path by data, creating it when it does not exist.
// A symbolic link is followed, so that the real file is replaced and the link stays. The file
// has mode 0600, or less where the existing file had less.
func Write(path string, data []byte) error {
	return Replace(path, data, nil)
}

// Replace is [Write] with a last look: just before the rename it calls check with the target's
// present contents (nil and false when there is no file). When check returns an error nothing
// is changed and Replace returns that error unwrapped. A nil check accepts everything.
//
// Replace takes no lock: a writer that acts between check and rename is not noticed.
func Replace(path string, data []byte, check func(current []byte, exists bool) error) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	old, err := inspect(target)
	if err != nil {
		return err
	}
	temp, err := writeTemp(target, data, old)
	if err != nil {
		return err
	}
	if err := commit(temp, target, check); err != nil {
		// Best effort: the error that led here matters more than a left-over file.
		_ = os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(target))
}

// resolve follows symbolic links to the file that is to be replaced. A link that leads to
// nothing is an error: creating its target would put a file where nobody expects one.
func resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		return target, nil
	}
	if _, lerr := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && errors.Is(lerr, fs.ErrNotExist) {
		return path, nil
	}
	return "", fmt.Errorf("resolving %q: %w", path, err)
}

// inspect returns what stands at target, or nil when nothing does.
func inspect(target string) (fs.FileInfo, error) {
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("inspecting the file to replace: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("replacing %q: %w", target, ErrNotRegular)
	}
	return info, nil
}

// writeTemp writes data to a new file beside target, flushes it to the disk and returns its
// name. os.CreateTemp opens with O_EXCL and mode 0600.
func writeTemp(target string, data []byte, old fs.FileInfo) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(target), tempPrefix(target)+"*")
	if err != nil {
		return "", fmt.Errorf("creating a temporary file: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing a temporary file: %w", err)
		}
	}()
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if old != nil {
		keepOwner(f, old)
		if err := f.Chmod(old.Mode().Perm() & maxMode); err != nil {
			return "", err
		}
	}
	return f.Name(), f.Sync()
}

// tempPrefix is how the names of temporary files for target begin.
func tempPrefix(target string) string { return "." + filepath.Base(target) + ".tmp-" }

// Sweep removes what writers of the file at path left behind when they were killed.
// The caller holds a lock that all writers of that file hold while they write.
func Sweep(path string) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("looking for left-over files: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix(target)) || !entry.Type().IsRegular() {
			continue
		}
		if err := os.Remove(filepath.Join(filepath.Dir(target), entry.Name())); err != nil {
			return fmt.Errorf("removing a left-over file: %w", err)
		}
	}
	return nil
}

// commit asks check about the present contents and renames temp over target.
func commit(temp, target string, check func([]byte, bool) error) error {
	if check != nil {
		current, err := os.ReadFile(target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the file to replace: %w", err)
		}
		if err := check(current, err == nil); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, target); err != nil {
		return fmt.Errorf("replacing the file: %w", err)
	}
	return nil
}
