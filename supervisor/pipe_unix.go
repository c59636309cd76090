// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervisor

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryWrite writes what the pipe takes at once, without waiting: for most frames
// that is all of it, and no goroutine is needed. The file is in non-blocking
// mode, as os.Pipe makes it.
func tryWrite(file *os.File, p []byte) (int, error) {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, err
	}
	n, failed := 0, error(nil)
	err = conn.Write(func(fd uintptr) bool {
		n, failed = unix.Write(int(fd), p)
		return true
	})
	if err != nil {
		return 0, err
	}
	if failed == nil {
		return n, nil
	}
	if errors.Is(failed, unix.EAGAIN) || errors.Is(failed, unix.EINTR) {
		return 0, nil
	}
	return 0, os.NewSyscallError("write", failed)
}
