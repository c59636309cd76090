// SPDX-License-Identifier: Apache-2.0

//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives the new file the old one's owner and group, so that root editing a user's
// file does not take it away from that user. Without the privilege it fails, and then the
// owner is the caller already or cannot be kept.
func keepOwner(f *os.File, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}

// syncDir flushes the folder, which makes the rename itself durable. File systems that cannot
// do this say EINVAL or ENOTSUP; then the rename is as durable as they make it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flushing the folder: %w", err)
	}
	defer d.Close()
	err = d.Sync()
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return fmt.Errorf("flushing the folder: %w", err)
	}
	return nil
}
