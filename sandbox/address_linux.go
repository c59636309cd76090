// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socketAddress is a socket's address as a program passes it to the kernel
// (struct sockaddr), which was copied once.
type socketAddress []byte

// The longest that the kernel takes (struct sockaddr_storage).
const maxSocketAddress = 128

func (a socketAddress) family() int {
	if len(a) < 2 {
		return -1
	}
	return int(binary.NativeEndian.Uint16(a))
}

// ip returns the address of an IP socket. It is false for one of another family, and for
// one that is too short, which the kernel refuses as well.
func (a socketAddress) ip() (to netip.AddrPort, ok bool) {
	switch {
	case a.family() == unix.AF_INET && len(a) >= unix.SizeofSockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a[4:8])), binary.BigEndian.Uint16(a[2:])), true
	case a.family() == unix.AF_INET6 && len(a) >= 24: // as of RFC 2133, without a scope
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a[8:24])), binary.BigEndian.Uint16(a[2:])), true
	}
	return netip.AddrPort{}, false
}

// connect connects a socket to it.
func (a socketAddress) connect(fd int) syscall.Errno {
	var at unsafe.Pointer
	if len(a) > 0 {
		at = unsafe.Pointer(&a[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(at), uintptr(len(a)))
	return errno
}

// sockaddr returns the address for a socket of a family.
func sockaddr(family int, to netip.AddrPort) unix.Sockaddr {
	if family == unix.AF_INET {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().Unmap().As4()}
	}
	return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
}
