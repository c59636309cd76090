// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"os"
	"strconv"
	"syscall"
)

// closeOnExecEach marks the descriptors beyond the standard ones that dir, the
// system's list of this process's open ones, names.
func closeOnExecEach(dir string) error {
	list, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd >= controlFD {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
