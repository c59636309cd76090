// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openFile opens a file for reading; a pipe in its place doesn't block.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// checkFile returns [ErrExposed] when others can do what is forbidden with a file.
func checkFile(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	if err := checkOwner(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&forbidden == 0 {
		return nil
	}
	what, mode := "read or change", "600"
	if forbidden == othersWrite {
		what, mode = "change", "go-w"
	}
	return &Error{
		Kind: ErrExposed, Path: path,
		Message: fmt.Sprintf("others can %s it (mode %04o)", what, info.Mode().Perm()),
		Fix:     "run: chmod " + mode + " " + shellQuote(path),
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
	return foreign(path, int(stat.Uid), user)
}

// foreign is the error for what belongs to somebody else.
func foreign(path string, owner, user int) error {
	return &Error{
		Kind: ErrExposed, Path: path,
		Message: fmt.Sprintf("it belongs to user %d, and garra runs as user %d", owner, user),
		Fix:     fmt.Sprintf("run as root: chown %d %s", user, shellQuote(path)),
	}
}

// explainDenied turns the error of a file that can't be opened for want of
// permission, as after a run as root, into one that says what to do.
func explainDenied(path string, err error) error {
	info, serr := os.Stat(path)
	if !errors.Is(err, fs.ErrPermission) || serr != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		return foreign(path, int(stat.Uid), os.Geteuid())
	}
	return &Error{
		Kind: ErrExposed, Path: path, Message: "its owner can't read it", Cause: err,
		Fix: "run: chmod 600 " + shellQuote(path),
	}
}

// inherit gives a file that root made to the owner of its folder, whose own garra
// couldn't use it else. It is best effort: root loses nothing by it.
func inherit(path string) {
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || os.Geteuid() != 0 {
		return
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(path, int(stat.Uid), int(stat.Gid))
	}
}
