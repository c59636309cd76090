// SPDX-License-Identifier: Apache-2.0

package adminapi

import "golang.org/x/sys/unix"

// peerUID is the user at the other end of a socket (unix(7), SO_PEERCRED).
func peerUID(fd int) (uint32, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
