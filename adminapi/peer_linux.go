// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser asks the kernel who is at the other end (unix(7), SO_PEERCRED). Root
// may come in: it could read the memory of this process anyway.
func sameUser(conn net.Conn) bool {
	raw, err := rawConn(conn)
	if err != nil {
		return false
	}
	var cred *unix.Ucred
	err = raw.Control(func(fd uintptr) {
		cred, _ = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return err == nil && cred != nil && (int(cred.Uid) == os.Geteuid() || cred.Uid == 0)
}
