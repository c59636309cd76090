// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"encoding/binary"
	"io"
	"os"
	"syscall"
)

// maxFiles is how many descriptors are handed over at once.
const maxFiles = 2

// sendFiles hands descriptors over by a stage's socket.
func sendFiles(socket int, part stagePart, files ...int) error {
	message := make([]byte, binary.Size(stageFailure{}))
	binary.NativeEndian.PutUint32(message, uint32(part))
	return syscall.Sendmsg(socket, message, syscall.UnixRights(files...), nil, 0)
}

// receiveFiles receives what a stage has to say, and the descriptors that came with it.
// At the end of what it has to say that is io.EOF.
func receiveFiles(socket *os.File) (said stageFailure, files []int, err error) {
	message := make([]byte, binary.Size(said))
	rights := make([]byte, syscall.CmsgSpace(4*maxFiles))
	n, got, err := receive(int(socket.Fd()), message, rights)
	switch {
	case err != nil:
		return said, nil, err
	case n == 0:
		return said, nil, io.EOF
	case n < len(message):
		return said, nil, io.ErrUnexpectedEOF // of so few bytes, all come together
	}
	if _, err := binary.Decode(message, binary.NativeEndian, &said); err != nil {
		return said, nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:got])
	if err != nil {
		return said, nil, err
	}
	for _, m := range messages {
		some, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return said, nil, err
		}
		files = append(files, some...)
	}
	for _, fd := range files {
		syscall.CloseOnExec(fd)
	}
	return said, files, nil
}

// receive is recvmsg(2), again when a signal came.
func receive(socket int, message, rights []byte) (n, got int, err error) {
	for {
		n, got, _, _, err = syscall.Recvmsg(socket, message, rights, 0)
		if err != syscall.EINTR {
			return n, got, err
		}
	}
}
