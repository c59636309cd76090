// SPDX-License-Identifier: Apache-2.0

//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestWriteKeepsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("giving files away needs root")
	}
	path := filepath.Join(t.TempDir(), "f")
	create(t, path, "old", 0o600)
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Skip("chown:", err)
	}
	if err := Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 65534 || st.Gid != 65534 {
		t.Errorf("owner %d:%d, want 65534:65534", st.Uid, st.Gid)
	}
}

func TestWriteRefusesPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("mkfifo:", err)
	}
	if err := Write(path, []byte("new")); !errors.Is(err, ErrNotRegular) {
		t.Errorf("writing over a pipe: %v, want ErrNotRegular", err)
	}
}
