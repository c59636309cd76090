// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A listener receives the system calls that a filter wants to have answered
// (seccomp_unotify(2)).
type listener struct {
	fd  int
	raw syscall.RawConn // waits for calls without holding up other goroutines
}

// newListener takes a descriptor over.
func newListener(fd int) (*listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	raw, err := os.NewFile(uintptr(fd), "calls").SyscallConn()
	return &listener{fd: fd, raw: raw}, err
}

// A call is one system call of a thread, which waits for its answer.
type call struct {
	id     uint64
	thread int
	number uint32
	args   [6]uint64
}

// receive waits for a call. After the last process of the filter it is an error.
func (l *listener) receive() (c call, err error) {
	failed := l.raw.Read(func(uintptr) (done bool) {
		c, done, err = l.next()
		return done
	})
	return c, errors.Join(err, failed)
}

// next receives a call if there is one, and is done with it, or for ever.
func (l *listener) next() (c call, done bool, err error) {
	ready := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(ready, 0); err != nil && !errors.Is(err, unix.EINTR) {
		return call{}, true, err
	}
	switch {
	case ready[0].Revents == 0:
		return call{}, false, nil
	case ready[0].Revents&unix.POLLIN == 0:
		return call{}, true, unix.ENOENT
	}
	var n struct { // seccomp_notif
		id          uint64
		pid, flags  uint32
		number      int32
		arch        uint32
		instruction uint64
		args        [6]uint64
	}
	err = l.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
	switch {
	case err == nil:
		return call{id: n.id, thread: int(n.pid), number: uint32(n.number), args: n.args}, true, nil
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT): // a signal ended the call meanwhile
		return l.next()
	}
	return call{}, true, err
}

// waits reports whether the call still waits. As long as it does the thread's number is
// no other thread's.
func (l *listener) waits(c *call) bool {
	return l.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&c.id)) == nil
}

// answer has the call return 0, or an error. If the caller is gone there is nobody to
// answer.
func (l *listener) answer(c *call, errno syscall.Errno) {
	answer := struct { // seccomp_notif_resp
		id    uint64
		value int64
		errno int32
		flags uint32
	}{id: c.id, errno: -int32(errno)}
	_ = l.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))
}

// replace puts a file in the place of one that the caller has. The call goes on waiting.
func (l *listener) replace(c *call, file, theirs int, closeOnExec bool) error {
	add := struct { // seccomp_notif_addfd
		id                    uint64
		flags                 uint32
		from, to, flagsOfFile uint32
	}{id: c.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, from: uint32(file), to: uint32(theirs)}
	if closeOnExec {
		add.flagsOfFile = unix.O_CLOEXEC
	}
	return l.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add))
}

func (l *listener) control(request uint, argument unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), uintptr(request), uintptr(argument))
	if errno != 0 {
		return errno
	}
	return nil
}

// file returns a duplicate of the descriptor in a call's first argument.
func (c *call) file() (fd int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.thread))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("\nTgid:\t"))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	process, err := strconv.Atoi(string(number))
	if err != nil {
		return 0, err
	}
	at, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(at)
	return unix.PidfdGetfd(at, int(int32(c.args[0])), 0)
}

// fileFlags returns how the caller opened that descriptor, as open(2) has it.
func (c *call) fileFlags() (int, error) {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", c.thread, int32(c.args[0])))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(info, []byte("flags:\t"))
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	flags, err := strconv.ParseInt(string(text), 8, 64)
	return int(flags), err
}

// memory reads what is at an address of the caller's.
func (c *call) memory(address uint64, size int) ([]byte, error) {
	data := make([]byte, size)
	local := []unix.Iovec{{Base: &data[0]}}
	local[0].SetLen(size)
	n, err := unix.ProcessVMReadv(c.thread, local, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	if err == nil && n < size {
		err = unix.EFAULT
	}
	return data, err
}
