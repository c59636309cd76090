// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd

package adminapi

import (
	"net"
	"os"
	"syscall"
)

// sameUser asks the kernel who is at the other end. Root may come in: it could
// read the memory of this process anyway.
func sameUser(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	uid, known := uint32(0), error(nil)
	err = raw.Control(func(fd uintptr) { uid, known = peerUID(int(fd)) })
	return err == nil && known == nil && (int(uid) == os.Geteuid() || uid == 0)
}
