// SPDX-License-Identifier: Apache-2.0

// Package hangup tells whether anybody is left who could read a stream. Writing
// would tell too, but who waits for an answer has nothing to write yet.
package hangup

import "syscall"

// Of returns a function that reports whether the other end of a stream is gone: of
// a pipe that nobody can read any more, of a socket that was closed. It never
// waits. Of what is neither, and on systems other than Linux, it reports false.
func Of(stream any) (gone func() bool) {
	if s, ok := stream.(syscall.Conn); ok {
		if conn, err := s.SyscallConn(); err == nil {
			return func() bool { return hungUp(conn) }
		}
	}
	return func() bool { return false }
}
