// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// maxFileSize is the largest configuration file that is read. Real ones have some kilobytes.
const maxFileSize = 16 << 20

// bom is the UTF-8 byte order mark that some Windows editors put at the start of a file.
const bom = "\ufeff"

// source is one configuration file as it was read: its bytes, its tree, and the places in it.
type source struct {
	name   string // base name
	path   string
	exists bool
	mode   fs.FileMode
	hash   string // hexadecimal SHA-256 of the bytes; empty when there are none
	bom    bool   // the file starts with a byte order mark, which data is without
	data   []byte
	index  textIndex // of data
	root   *node     // nil when the file does not exist or can't be parsed
}

// fileError is a reason why a file contributes nothing, and where in it.
type fileError struct {
	code    Code
	offset  int // in source.data; negative when the whole file is meant
	message string
	fix     string
}

func (e *fileError) Error() string { return e.message }

// wholeFile returns a fileError without a place.
func wholeFile(code Code, fix, format string, args ...any) *fileError {
	return &fileError{code: code, offset: -1, message: fmt.Sprintf(format, args...), fix: fix}
}

// readSource reads and parses the file at path. The source is never nil; it has a root only
// when there is no error and the file exists.
func readSource(path string) (*source, *fileError) {
	s := &source{name: filepath.Base(path), path: path}
	data, ferr := s.read()
	if ferr != nil || !s.exists {
		return s, ferr
	}
	return s, s.setData(data)
}

// setData makes data the contents of the source and parses it.
func (s *source) setData(data []byte) *fileError {
	s.exists, s.hash, s.root = true, hashOf(data), nil
	s.data, s.bom = bytes.CutPrefix(data, []byte(bom))
	s.index = newTextIndex(s.data, lineStarts(s.data))
	if ferr := checkText(s.data); ferr != nil {
		return ferr
	}
	root, ferr := s.parser().parse(s.data)
	if ferr != nil {
		return ferr
	}
	s.root = root
	return nil
}

// hashOf returns the fingerprint of a file's bytes.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// parser turns text without byte order mark into a tree.
type parser interface {
	parse(src []byte) (*node, *fileError)
}

// parser returns the parser for the file's name.
func (s *source) parser() parser {
	if isYAML(s.name) {
		return yamlSyntax{}
	}
	return jsonSyntax{}
}

// isYAML reports whether a file of this name holds YAML; every other one holds JSON.
func isYAML(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yml" || ext == ".yaml"
}

// read returns the file's bytes and sets exists and mode. What is no file isn't opened, since
// opening alone does something to a device and wakes who writes to a pipe. One that takes the
// place of a file meanwhile is not waited for.
func (s *source) read() ([]byte, *fileError) {
	if info, err := os.Stat(s.path); err == nil && !info.Mode().IsRegular() {
		s.exists = true
		return nil, notRegular(info)
	}
	f, err := os.OpenFile(s.path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, s.openError(err)
	}
	defer f.Close()
	s.exists = true
	info, err := f.Stat()
	if err != nil {
		return nil, wholeFile(CodeFileUnreadable, "", "the file can't be read: %v", reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(info)
	}
	s.mode = info.Mode().Perm()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, wholeFile(CodeFileUnreadable, "", "the file can't be read: %v", reason(err))
	}
	if len(data) > maxFileSize {
		return nil, wholeFile(CodeFileUnreadable, "check that this is the right file",
			"the file has more than %d MiB", maxFileSize>>20)
	}
	return data, nil
}

// notRegular refuses what stands in the place of a file.
func notRegular(info fs.FileInfo) *fileError {
	return wholeFile(CodeFileUnreadable, "put a regular file, or a link to one, in its place",
		"this is not a regular file but %s", describeMode(info.Mode()))
}

// openError tells a file that isn't there from one that can't be opened.
func (s *source) openError(err error) *fileError {
	if !errors.Is(err, fs.ErrNotExist) {
		s.exists = true
		fix := "check the file's owner and permissions"
		if info, lerr := os.Lstat(s.path); lerr == nil && info.Mode().Type() == fs.ModeSymlink &&
			!errors.Is(err, fs.ErrPermission) {
			fix = "mend or remove the link"
		}
		return wholeFile(CodeFileUnreadable, fix, "the file can't be opened: %v", reason(err))
	}
	if info, err := os.Lstat(s.path); err == nil && info.Mode().Type() == fs.ModeSymlink {
		s.exists = true
		return wholeFile(CodeFileUnreadable, "mend or remove the link",
			"this is a symbolic link that leads to nothing")
	}
	return nil
}

// reason is an error without the path that it happened at, which the finding has already.
func reason(err error) error {
	if perr, ok := errors.AsType[*fs.PathError](err); ok {
		return perr.Err
	}
	return err
}

func describeMode(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "a device"
	}
}

// checkText reports bytes that have no place in a text file.
func checkText(data []byte) *fileError {
	const fix = "save the file as UTF-8 text"
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return &fileError{CodeFileNotUTF8, 0, "the file is UTF-16", fix}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return &fileError{CodeFileNotUTF8, i, "the file holds a NUL byte", fix}
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return &fileError{CodeFileNotUTF8, i, "the file holds bytes that are not UTF-8", fix}
		}
		i += n
	}
	return nil
}
