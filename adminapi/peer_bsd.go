// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd

package adminapi

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser asks the kernel who is at the other end (unix(4), LOCAL_PEERCRED).
func sameUser(conn net.Conn) bool {
	raw, err := rawConn(conn)
	if err != nil {
		return false
	}
	var cred *unix.Xucred
	err = raw.Control(func(fd uintptr) {
		cred, _ = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	})
	return err == nil && cred != nil && (int(cred.Uid) == os.Geteuid() || cred.Uid == 0)
}
