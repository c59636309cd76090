// SPDX-License-Identifier: Apache-2.0

package hangup

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hungUp asks for no event: an end that is gone is told anyway (poll(2)), and one
// that was only half-closed is not.
func hungUp(conn syscall.RawConn) (gone bool) {
	err := conn.Control(func(fd uintptr) {
		list := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(list, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil // an error is that we closed it
}
