// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// chmod gives a file or a folder a mode.
func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestModes(t *testing.T) {
	o := options(t)
	v := create(t, o, phrase(t), nil)
	info, err := os.Stat(o.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o666, 0o610} {
		chmod(t, o.Path, mode)
		_, err := Open(o, phrase(t))
		wantKind(t, err, ErrExposed, "run: chmod 600 "+o.Path)
		_, err = v.Reload()
		wantKind(t, err, ErrExposed)
		wantKind(t, v.Update(func(*Edit) error { return nil }), ErrExposed)
	}
	for _, mode := range []fs.FileMode{0o600, 0o400, 0o700} {
		chmod(t, o.Path, mode)
		open(t, o, phrase(t))
	}
}

func TestModesOfFolders(t *testing.T) {
	o := options(t)
	create(t, o, phrase(t), nil)
	folder := filepath.Dir(o.Path)
	for mode, exposed := range map[fs.FileMode]bool{
		0o700: false, 0o755: false, 0o777 | fs.ModeSticky: false, 0o775 | fs.ModeSticky: false,
		0o777: true, 0o770: true, 0o702: true,
	} {
		chmod(t, folder, mode)
		_, err := Open(o, phrase(t))
		if exposed {
			wantKind(t, err, ErrExposed, "run: chmod go-w "+folder)
			_, err = Create(Options{Path: filepath.Join(folder, "new.age"), WorkFactor: 1}, phrase(t))
			wantKind(t, err, ErrExposed)
		} else if err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
}

func TestModesOfIdentities(t *testing.T) {
	id := newIdentity(t)
	chmod(t, id.path, 0o644)
	_, err := Identities([]string{id.path}, nil)
	wantKind(t, err, ErrExposed, "run: chmod 600 "+id.path)
	chmod(t, id.path, 0o600)
	chmod(t, filepath.Dir(id.path), 0o777)
	_, err = Identities([]string{id.path}, nil)
	wantKind(t, err, ErrExposed, "run: chmod go-w "+filepath.Dir(id.path))
}

// Whoever can change the list of recipients could add themselves.
func TestModesOfRecipients(t *testing.T) {
	id := newIdentity(t)
	list := filepath.Join(privateDir(t), "recipients")
	if err := os.WriteFile(list, []byte(id.recipient), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, list, 0o644)
	if _, err := Identities([]string{id.path}, []string{"@" + list}); err != nil {
		t.Error(err)
	}
	chmod(t, list, 0o664)
	_, err := Identities([]string{id.path}, []string{"@" + list})
	wantKind(t, err, ErrExposed, "run: chmod go-w "+list)
}

func TestThingsThatAreNoFiles(t *testing.T) {
	o := options(t)
	if err := syscall.Mkfifo(o.Path, 0o600); err != nil {
		t.Skip("named pipes:", err)
	}
	_, err := Open(o, phrase(t))
	wantKind(t, err, ErrExposed, "not a regular file")
	o.Path = privateDir(t)
	_, err = Open(o, phrase(t))
	wantKind(t, err, ErrExposed, "not a regular file")
}

// A link is followed; the lock and the new file are beside what it leads to.
func TestLinks(t *testing.T) {
	o := options(t)
	link := o
	link.Path = filepath.Join(privateDir(t), "link.age")
	create(t, o, phrase(t), nil)
	if err := os.Symlink(o.Path, link.Path); err != nil {
		t.Fatal(err)
	}
	set(t, open(t, link, phrase(t)), map[string]string{"a": "1"})
	if got := values(t, open(t, o, phrase(t))); got["a"] != "1" {
		t.Errorf("got %v", got)
	}
	entries, err := os.ReadDir(filepath.Dir(link.Path))
	if err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	chmod(t, filepath.Dir(link.Path), 0o777)
	_, err = Open(link, phrase(t))
	wantKind(t, err, ErrExposed, "chmod go-w "+filepath.Dir(link.Path))
}

// Root can change a user's vault, and everything stays the user's.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	o := options(t)
	create(t, o, phrase(t), nil)
	for _, path := range []string{filepath.Dir(o.Path), o.Path, filepath.Dir(o.Record)} {
		if err := os.Chown(path, 65534, 65534); err != nil {
			t.Skip("chown:", err)
		}
	}
	set(t, open(t, o, phrase(t)), map[string]string{"a": "1"})
	for _, path := range []string{o.Path, o.Path + ".lock", o.Record, o.Record + ".lock"} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 65534 {
			t.Errorf("%s belongs to user %d", path, owner)
		}
	}
}

// openExposed is the part of a process without privileges that can't open a vault.
// Its arguments are the vault, and what the error must say.
func openExposed(args []string) error {
	p, err := Seal([]byte("correct horse"))
	if err != nil {
		return err
	}
	_, err = Open(Options{Path: args[0]}, Passphrase(p))
	if !errors.Is(err, ErrExposed) || !strings.Contains(err.Error(), args[1]) {
		return fmt.Errorf("got %w; want %q", err, args[1])
	}
	return nil
}

func TestOwnersOfOthers(t *testing.T) {
	dir := publicDir(t)
	path := filepath.Join(dir, "vault.age")
	create(t, Options{Path: path, WorkFactor: 1}, phrase(t), nil)
	for _, c := range []struct {
		folder, file int
		mode         fs.FileMode
		fix          string
	}{
		{65534, 65533, 0o604, "run as root: chown 65534 " + path},
		{65534, 65533, 0o600, "run as root: chown 65534 " + path},
		{65534, 0, 0o600, "run as root: chown 65534 " + path},
		{65534, 65534, 0o000, "run: chmod 600 " + path},
		{65533, 65534, 0o600, "run as root: chown 65534 " + dir},
	} {
		if err := errors.Join(os.Chown(dir, c.folder, c.folder), os.Chown(path, c.file, c.file)); err != nil {
			t.Fatal(err)
		}
		chmod(t, path, c.mode)
		if out, err := unprivileged(t, dir, "exposed", path, c.fix).CombinedOutput(); err != nil {
			t.Errorf("%+v: %v: %s", c, err, out)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/home/me/vault.age": "/home/me/vault.age", "/a b/$(x)": "'/a b/$(x)'", "/it's": `'/it'\''s'`,
		"-rf": "'-rf'", "/ü": "'/ü'",
	} {
		if got := shellQuote(path); got != want {
			t.Errorf("%q: %s", path, got)
		}
	}
}
