// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, name := range []string{"f", ".f.tmp-1", ".f.tmp-", ".ff.tmp-1", ".f.tmp", "f.tmp-1", ".other.tmp-1"} {
		create(t, filepath.Join(dir, name), name, 0o600)
	}
	if err := os.Mkdir(filepath.Join(dir, ".f.tmp-folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(path); err != nil {
		t.Fatal(err)
	}
	entries, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	want := []string{".f.tmp", ".f.tmp-folder", ".ff.tmp-1", ".other.tmp-1", "f", "f.tmp-1"}
	if !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	if err := Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(filepath.Join(dir, "nowhere", "f")); err == nil {
		t.Error("a folder that isn't there was swept")
	}
}
