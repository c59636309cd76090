// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
)

// An output is standard output, which remembers that something could not be
// written: a command that has lost its answer has failed, whatever it did.
type output struct {
	io.Writer
	lost atomic.Pointer[error]
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.lost.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Fd is the file descriptor, by which a terminal is known; none is one that is
// no terminal.
func (o *output) Fd() uintptr {
	if f, ok := o.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// SyscallConn implements syscall.Conn, by which is known whether anybody reads.
func (o *output) SyscallConn() (syscall.RawConn, error) {
	if c, ok := o.Writer.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// failure is the first error of writing, nil when all was written.
func (o *output) failure() error {
	if lost := o.lost.Load(); lost != nil {
		return fmt.Errorf("the output could not be written: %w; what the command did is done", *lost)
	}
	return nil
}
