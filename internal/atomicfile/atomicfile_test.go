// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// wantFile fails unless path holds content with mode and stands in a folder of n entries.
func wantFile(t *testing.T, path, content string, mode fs.FileMode, n int) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != content {
		t.Errorf("%s holds %q, want %q", path, got, content)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != mode {
		t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), mode)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != n {
		t.Errorf("the folder holds %v, want %d entries", entries, n)
	}
}

// create writes a file with an exact mode, whatever the umask is.
func create(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestWriteModes(t *testing.T) {
	for _, tt := range []struct {
		name      string
		old, want fs.FileMode
	}{
		{"new", 0, 0o600},
		{"wide", 0o644, 0o600},
		{"executable", 0o755, 0o600},
		{"private", 0o600, 0o600},
		{"stricter", 0o400, 0o400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			if tt.old != 0 {
				create(t, path, "old", tt.old)
			}
			if err := Write(path, []byte("new")); err != nil {
				t.Fatal(err)
			}
			wantFile(t, path, "new", tt.want, 1)
		})
	}
}

func TestWriteFollowsSymlinks(t *testing.T) {
	target := filepath.Join(t.TempDir(), "real")
	create(t, target, "old", 0o600)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(target, link); err != nil {
		t.Skip("symbolic links:", err)
	}
	if err := Write(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, target, "new", 0o600, 1)
	info, err := os.Lstat(link)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link became %v", info.Mode())
	}
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Skip("symbolic links:", err)
	}
	if err := Write(folder, nil); !errors.Is(err, ErrNotRegular) {
		t.Errorf("writing over a folder: %v, want ErrNotRegular", err)
	}
	if err := Write(dangling, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing over a dangling link: %v, want fs.ErrNotExist", err)
	}
	if err := Write(filepath.Join(dir, "no", "such"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing into no folder: %v, want fs.ErrNotExist", err)
	}
}

func TestReplaceChecks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	refused := errors.New("refused")
	err := Replace(path, []byte("new"), func(current []byte, exists bool) error {
		if exists || current != nil {
			t.Errorf("check saw %q, %v for no file", current, exists)
		}
		return refused
	})
	if err != refused {
		t.Errorf("Replace returned %v, want the check's own error", err)
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	if len(entries) != 0 {
		t.Errorf("a refused Replace left %v", entries)
	}

	create(t, path, "old", 0o600)
	err = Replace(path, []byte("new"), func(current []byte, exists bool) error {
		if !exists || string(current) != "old" {
			t.Errorf("check saw %q, %v", current, exists)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "new", 0o600, 1)
}
