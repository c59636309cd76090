// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxSize is how many bytes a file of a vault, or of identities, may have.
const maxSize = 16 << 20

// errTooLarge is the cause when a file has more.
var errTooLarge = errors.New("more than 16 MiB")

// What others must not be able to do with a file.
const (
	othersAny   fs.FileMode = 0o077
	othersWrite fs.FileMode = 0o022
)

// resolve follows symbolic links to a file, which need not exist yet, and checks
// the folders on the way: of the link and of the file. The error is
// [fs.ErrNotExist] when there is no folder for the file.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	file, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, fs.ErrNotExist) {
		folder, ferr := filepath.EvalSymlinks(filepath.Dir(abs))
		file, err = filepath.Join(folder, filepath.Base(abs)), ferr
	}
	if err != nil {
		return "", err
	}
	for _, name := range []string{abs, file} {
		if err := checkFolder(filepath.Dir(name)); err != nil {
			return "", err
		}
	}
	return file, nil
}

// readGuarded returns the contents of a file with which others can't do what is
// forbidden. What is checked is what is read: the file is open meanwhile.
func readGuarded(path string, forbidden fs.FileMode) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, explainDenied(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{
			Kind: ErrExposed, Path: path, Message: "not a regular file",
			Fix: "move it away, and put a file there",
		}
	}
	if err := checkFile(path, info, forbidden); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = &Error{Kind: ErrDamaged, Path: path, Message: "the file is too large", Cause: errTooLarge}
	}
	return data, err
}

// checkFolder makes sure that others can't put another file in a file's place.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("checking the folder: %w", err)
	}
	return checkFolderInfo(folder, info)
}

// shellQuote returns a path as a shell wants to have it.
func shellQuote(path string) string {
	plain := !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+@:,", r) && !isNameRune(r)
	})
	if plain && !strings.HasPrefix(path, "-") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
