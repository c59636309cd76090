// SPDX-License-Identifier: Apache-2.0

//go:build unix

package handover

import (
	"errors"
	"net"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendFiles writes a line with descriptors.
func sendFiles(conn *net.UnixConn, line []byte, files []*os.File) error {
	if len(files) > maxFiles {
		return errors.New("they are too many")
	}
	fds := make([]int, len(files))
	for i, file := range files {
		raw, err := file.SyscallConn() // not Fd, which may make a listener block that another still uses
		if err == nil {
			err = raw.Control(func(fd uintptr) { fds[i] = int(fd) })
		}
		if err != nil {
			return err
		}
	}
	_, _, err := conn.WriteMsgUnix(line, unix.UnixRights(fds...), nil)
	runtime.KeepAlive(files)
	return err
}

// receiveFiles reads a line, and the descriptors that come with it.
func receiveFiles(conn *net.UnixConn) (line []byte, files []*os.File, err error) {
	line, control := make([]byte, maxWord), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, _, _, err := conn.ReadMsgUnix(line, control) // marks them close-on-exec
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, errGone
	}
	messages, err := unix.ParseSocketControlMessage(control[:oobn])
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // something else than descriptors
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd) // where the system can't do it at once
			files = append(files, os.NewFile(uintptr(fd), "a descriptor of the gateway"))
		}
	}
	return line[:n], files, nil
}

// FileOf returns a duplicate of what is behind a listener or a file.
func FileOf(of any, name string) (*os.File, error) {
	source, ok := of.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	err = raw.Control(func(its uintptr) { fd, failed = unix.FcntlInt(its, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// isReset reports whether an error of a connection is that nobody is at its other end.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
