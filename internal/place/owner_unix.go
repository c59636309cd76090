// SPDX-License-Identifier: Apache-2.0

//go:build unix

package place

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByMe reports whether a file belongs to the user that garra runs as.
func ownedByMe(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
