// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd

package adminapi

import "golang.org/x/sys/unix"

// peerUID is the user at the other end of a socket (unix(4), LOCAL_PEERCRED).
func peerUID(fd int) (uint32, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
