// SPDX-License-Identifier: Apache-2.0

package hangup

import (
	"context"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// await sleeps in poll(2), which the end of ctx wakes by a pipe. It asks for no event
// of the stream, as hungUp does.
func await(ctx context.Context, conn syscall.RawConn) (gone bool) {
	wake, end, err := os.Pipe()
	if err != nil {
		return ask(ctx, conn)
	}
	defer wake.Close()
	defer end.Close()
	stop := context.AfterFunc(ctx, func() { end.Close() })
	defer stop()
	err = conn.Control(func(fd uintptr) { gone = poll(int32(fd), int32(wake.Fd())) })
	return gone || err != nil // an error is that we closed it
}

// poll waits until one of two descriptors is hung up, and reports whether the first is.
func poll(stream, wake int32) bool {
	list := []unix.PollFd{{Fd: stream}, {Fd: wake}}
	for {
		if _, err := unix.Poll(list, -1); !errors.Is(err, unix.EINTR) {
			return err == nil && list[0].Revents != 0
		}
	}
}
