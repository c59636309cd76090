// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd

package adminapi

import (
	"errors"
	"net"
	"syscall"
)

// rawConn gives access to a connection's descriptor.
func rawConn(conn net.Conn) (syscall.RawConn, error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("not a connection of the operating system")
	}
	return c.SyscallConn()
}
