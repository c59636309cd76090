// SPDX-License-Identifier: Apache-2.0

// Package hangup tells whether anybody is left who could read a stream. Writing
// would tell too, but who waits for an answer has nothing to write yet.
package hangup

import (
	"context"
	"syscall"
	"time"
)

// askEvery is how often is looked whether the other end is still there, where nothing
// tells when it goes.
const askEvery = 500 * time.Millisecond

// Of returns a function that reports whether the other end of a stream is gone: of
// a pipe that nobody can read any more, of a socket that was closed. It never
// waits. Of what is neither, and of pipes on systems other than Linux, it reports
// false.
func Of(stream any) (gone func() bool) {
	conn := connOf(stream)
	return func() bool { return conn != nil && hungUp(conn) }
}

// Wait waits until the other end of a stream is gone, as Of tells it, and reports
// whether it is: false is that ctx ended. The stream must stay open until then.
func Wait(ctx context.Context, stream any) (gone bool) {
	if conn := connOf(stream); conn != nil {
		return await(ctx, conn)
	}
	<-ctx.Done()
	return false
}

// connOf returns what a stream is to the system, nil when that is nothing.
func connOf(stream any) syscall.RawConn {
	if s, ok := stream.(syscall.Conn); ok {
		if conn, err := s.SyscallConn(); err == nil {
			return conn
		}
	}
	return nil
}

// ask is Wait, by looking again and again.
func ask(ctx context.Context, conn syscall.RawConn) (gone bool) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for !hungUp(conn) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
