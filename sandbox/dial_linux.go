// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A callerSocket is the socket of a call.
type callerSocket struct {
	fd       int // a duplicate
	family   int
	kind     int
	protocol int
	network  uint64 // the cookie of its namespace
}

// newCallerSocket looks at a descriptor. One that is no socket is an error, as for the
// call itself.
func newCallerSocket(fd int) (*callerSocket, error) {
	s := &callerSocket{fd: fd}
	for _, option := range []struct {
		name int
		to   *int
	}{{unix.SO_DOMAIN, &s.family}, {unix.SO_TYPE, &s.kind}, {unix.SO_PROTOCOL, &s.protocol}} {
		value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, option.name)
		if err != nil {
			return nil, err
		}
		*option.to = value
	}
	var err error
	s.network, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	return s, err
}

func (s *callerSocket) isTCP() bool {
	ip := s.family == unix.AF_INET || s.family == unix.AF_INET6
	return ip && s.kind == unix.SOCK_STREAM && s.protocol == unix.IPPROTO_TCP
}

// States of a TCP connection (netinet/tcp.h).
const (
	tcpConnecting = 2
	tcpClosed     = 7
)

// connectedBefore answers a connect(2) for a socket that the gate put there: what came of
// the connection, as the kernel would say it. It is not done for a socket whose connection
// failed, which may be connected anew. To be taken apart (AF_UNSPEC) is refused: what is
// left would be a socket of the host's network.
func (s *callerSocket) connectedBefore(address socketAddress) (errno syscall.Errno, done bool) {
	if address.family() == unix.AF_UNSPEC {
		return unix.EACCES, true
	}
	if failed, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || failed != 0 {
		return syscall.Errno(failed), true
	}
	state := s.state()
	if state == tcpConnecting {
		return unix.EALREADY, true
	}
	return unix.EISCONN, state != tcpClosed
}

// state returns the state of a TCP socket's connection.
func (s *callerSocket) state() int {
	info, err := unix.GetsockoptTCPInfo(s.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0 // none of them, which is taken for a connection
	}
	return int(info.State)
}

// outside connects to an address in the host's network, and puts that socket in the place
// of the caller's. A caller that doesn't want to wait gets it while it is connecting.
func (g *gate) outside(c *call, s *callerSocket, to netip.AddrPort) syscall.Errno {
	flags, err := c.fileFlags()
	if err != nil {
		return unix.EACCES
	}
	fd, err := unix.Socket(s.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(fd)
	copyOptions(s.fd, fd)
	errno := errnoOrNone(unix.Connect(fd, sockaddr(s.family, to)))
	patient := flags&unix.O_NONBLOCK == 0
	if patient {
		if errno == unix.EINPROGRESS {
			errno = g.await(c, fd)
		}
		if err := unix.SetNonblock(fd, false); err != nil {
			return errnoOf(err)
		}
	}
	if errno != 0 && errno != unix.EINPROGRESS {
		return errno
	}
	if err := g.listener.replace(c, fd, int(int32(c.args[0])), flags&unix.O_CLOEXEC != 0); err != nil {
		return unix.EACCES // the caller is gone, most likely
	}
	return errno
}

// await waits for a connection to be made for as long as the kernel tries, or the caller
// lives.
func (g *gate) await(c *call, fd int) syscall.Errno {
	for g.listener.waits(c) {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(ready, int(time.Second.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return errnoOf(err)
		}
		if n > 0 {
			failed, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err != nil {
				return errnoOf(err)
			}
			return syscall.Errno(failed)
		}
	}
	return unix.EINTR
}

// copyOptions gives a socket the options that programs set before they connect.
func copyOptions(from, to int) {
	for _, option := range []struct{ level, name int }{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
		{unix.SOL_SOCKET, unix.SO_OOBINLINE},
		{unix.SOL_SOCKET, unix.SO_PRIORITY},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
		{unix.IPPROTO_TCP, unix.TCP_SYNCNT},
		{unix.IPPROTO_IP, unix.IP_TOS},
		{unix.IPPROTO_IPV6, unix.IPV6_TCLASS},
	} {
		if value, err := unix.GetsockoptInt(from, option.level, option.name); err == nil {
			_ = unix.SetsockoptInt(to, option.level, option.name, value) // one that is refused is one less
		}
	}
	for _, name := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if value, err := unix.GetsockoptTimeval(from, unix.SOL_SOCKET, name); err == nil {
			_ = unix.SetsockoptTimeval(to, unix.SOL_SOCKET, name, value)
		}
	}
	if value, err := unix.GetsockoptLinger(from, unix.SOL_SOCKET, unix.SO_LINGER); err == nil {
		_ = unix.SetsockoptLinger(to, unix.SOL_SOCKET, unix.SO_LINGER, value)
	}
}
