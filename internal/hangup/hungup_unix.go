// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package hangup

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp asks who is at the other end of a socket: nobody, once that was closed, and
// still somebody when it was half-closed. poll doesn't tell these apart here, and of a
// pipe nothing does.
func hungUp(conn syscall.RawConn) (gone bool) {
	err := conn.Control(func(fd uintptr) {
		_, err := unix.Getpeername(int(fd))
		gone = errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.EINVAL)
	})
	return gone || err != nil // an error is that we closed it
}
