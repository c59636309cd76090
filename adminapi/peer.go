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
	uid, ok := userAt(conn)
	return ok && (uid == os.Geteuid() || uid == 0)
}

// ofThisUser is sameUser without root.
func ofThisUser(conn net.Conn) bool {
	uid, ok := userAt(conn)
	return ok && uid == os.Geteuid()
}

// userAt is the user at the other end, as the kernel knows it.
func userAt(conn net.Conn) (uid int, ok bool) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	peer, known := uint32(0), error(nil)
	err = raw.Control(func(fd uintptr) { peer, known = peerUID(int(fd)) })
	return int(peer), err == nil && known == nil
}
