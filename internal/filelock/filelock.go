// SPDX-License-Identifier: Apache-2.0

// Package filelock locks a file between processes. A lock belongs to the open
// file and ends with it, so a process that is killed leaves none behind.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked is returned by [Try] when another process, or another open file of
// this one, has the lock.
var ErrLocked = errors.New("the file is locked by another process")

// Lock creates path if need be and waits until it has its lock. The file must be
// a separate one: a file that is replaced by renaming takes its lock with it.
func Lock(path string) (unlock func(), err error) { return open(path, true) }

// Try is Lock, but returns ErrLocked instead of waiting.
func Try(path string) (unlock func(), err error) { return open(path, false) }

// Hold is Try, but returns the open file: whoever has it open, here or in a process that
// it is handed to, has the lock.
func Hold(path string) (*os.File, error) { return openFile(path, false) }

func open(path string, wait bool) (func(), error) {
	f, err := openFile(path, wait)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

func openFile(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f, wait); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
