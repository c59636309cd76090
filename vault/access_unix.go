// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vault

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// What others must not be able to do with a file, and with its folder.
const (
	othersAny   fs.FileMode = 0o077
	othersWrite fs.FileMode = 0o022
)

// openFile opens a file for reading; a pipe in its place doesn't block.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// checkFile returns [ErrExposed] when others can read or write a file.
func checkFile(path string, info fs.FileInfo) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&othersAny == 0 {
		return nil
	}
	return &Error{
		Kind: ErrExposed, Path: path,
		Message: fmt.Sprintf("others can read or change it (mode %04o)", info.Mode().Perm()),
		Fix:     "run: chmod 600 " + shellQuote(path),
	}
}

// checkFolderInfo returns [ErrExposed] when others can replace files in a folder.
// In a sticky one, such as /tmp, they can replace only their own.
func checkFolderInfo(path string, info fs.FileInfo) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&othersWrite == 0 || info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return &Error{
		Kind: ErrExposed, Path: path,
		Message: fmt.Sprintf("others can replace files in this folder (mode %04o)", info.Mode().Perm()),
		Fix:     "run: chmod go-w " + shellQuote(path),
	}
}

// checkOwner wants a file to belong to this process's user or to root. Root may
// use everybody's: a user's vault holds nothing that root couldn't get, and the
// key is asked for anyway.
func checkOwner(path string, info fs.FileInfo) error {
	user := os.Geteuid()
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || user == 0 || stat.Uid == 0 || int(stat.Uid) == user {
		return nil
	}
	return &Error{
		Kind: ErrExposed, Path: path,
		Message: fmt.Sprintf("it belongs to user %d, and garra runs as user %d", stat.Uid, user),
		Fix:     fmt.Sprintf("run as root: chown %d %s", user, shellQuote(path)),
	}
}
