// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/garraia/garra/internal/nameserver"
	"github.com/garraia/garra/internal/reach"
)

// A gate is the only way from a server's own network to the host's. The namespace has a
// loopback interface and nothing else, so what the gate doesn't do for the server can't
// be done. It is a part of the launcher, which is in the host's network.
//
// The kernel stops each connect(2) and listen(2) of the tree and asks the gate, which
// does the call in the caller's place: with a copy of the address, and with the socket
// itself. It never has the kernel go on with the caller's own call. Another thread could
// change the address, or put another socket in the place of the descriptor, between the
// decision and the call.
//
// A connection to the outside is made with a socket of the host's network, which takes
// the place of the caller's descriptor. From then on nobody is in between. Such a socket
// can do nothing in the host's network but to speak to whom it was connected to: another
// connect(2), and listen(2), come here again.
type gate struct {
	policy   *reach.Policy
	names    *nameserver.Server
	refusals *refusals
	host     uint64 // the cookie of the host's network namespace
	listener *listener
	places   chan struct{} // has an item for each call that is being answered
	relays   chan struct{} // and for each connection with a relay
}

// maxCalls is how many calls of one server are answered at a time. Only calls that wait
// for a connection stay, so a server that has more waits for itself.
const maxCalls = 128

// gated reports whether there is to be a gate.
func (c *confinement) gated() bool {
	return c.Level == LevelNamespaces && (c.Network == NetworkInternet || c.Network == NetworkListed)
}

// ownNetwork reports whether the server gets a network namespace.
func (c *confinement) ownNetwork() bool { return c.Network == NetworkNone || c.gated() }

// reach returns what the server may connect to.
func (c *confinement) reach() (*reach.Policy, error) {
	if c.Network == NetworkListed {
		return reach.Listed(c.Hosts)
	}
	return reach.Internet(), nil
}

// newGate returns nil where there is to be none.
func newGate(c *confinement, r *refusals) (*gate, error) {
	if c == nil || !c.gated() {
		return nil, nil
	}
	g := &gate{refusals: r, places: make(chan struct{}, maxCalls), relays: make(chan struct{}, maxRelays)}
	var err error
	if g.policy, err = c.reach(); err != nil {
		return nil, err
	}
	if g.host, err = hostNetwork(); err != nil {
		return nil, err
	}
	g.names = nameserver.New(nameserver.Options{
		Policy: g.policy, Lookup: lookUp, Own: ownAddress,
		Refused: func(name, why string) { r.add(Refusal{Host: name, Why: why}) },
	})
	return g, nil
}

// hostNetwork returns the cookie of this process's network namespace.
func hostNetwork() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// lookUp asks the host's resolver, and its file of hosts.
func lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	found, err := new(net.Resolver).LookupNetIP(ctx, "ip", name)
	// Of a host without a way to the IPv6 internet: a program that looks for such ways
	// itself finds none from its own network, to any address, and would try them all.
	reachable := slices.DeleteFunc(slices.Clone(found), func(addr netip.Addr) bool {
		return !addr.Unmap().Is4() && !routed(addr)
	})
	if len(reachable) == 0 {
		return found, err
	}
	return reachable, err
}

// routed reports whether the host has a way to an address. Nothing is sent for that.
func routed(addr netip.Addr) bool {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 53)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// ownAddress reports whether an address is one of the host.
func ownAddress(addr netip.Addr) bool {
	if reach.Local(addr) {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range list {
		if network, ok := a.(*net.IPNet); ok && network.IP.Equal(addr.AsSlice()) {
			return true
		}
	}
	return false
}

// take takes what the init or the stage hands over, and begins to serve it.
func (g *gate) take(part stagePart, files []int) error {
	switch {
	case part == partNames && len(files) == 2:
		return g.serveNames(files[0], files[1])
	case part == partListener && len(files) == 1:
		l, err := newListener(files[0])
		if err != nil {
			return err
		}
		g.listener = l
		go g.serve() // ends with the last process of the server, or with this one
		return nil
	}
	return unix.EPROTO
}

// serveNames answers questions by the init's sockets, which are in the server's network.
func (g *gate) serveNames(udp, tcp int) error {
	packets, conns := os.NewFile(uintptr(udp), "udp"), os.NewFile(uintptr(tcp), "tcp")
	defer packets.Close()
	defer conns.Close()
	conn, err := net.FilePacketConn(packets)
	if err != nil {
		return err
	}
	l, err := net.FileListener(conns)
	if err != nil {
		conn.Close()
		return err
	}
	go g.names.ServePackets(conn) // both end with this process
	go g.names.ServeConns(l)
	return nil
}

// serve answers calls.
func (g *gate) serve() {
	for {
		c, err := g.listener.receive()
		if err != nil {
			return
		}
		g.places <- struct{}{}
		go func() { // ends with the call; nobody waits for it
			defer func() { <-g.places }()
			if errno, answered := g.do(&c); !answered {
				g.listener.answer(&c, errno)
			}
		}()
	}
}

// do does a call in the caller's place.
func (g *gate) do(c *call) (errno syscall.Errno, answered bool) {
	fd, err := c.file()
	if err != nil {
		return errnoOf(err), false
	}
	defer unix.Close(fd)
	s, err := newCallerSocket(fd)
	if err != nil {
		return errnoOf(err), false
	}
	if c.number == unix.SYS_LISTEN {
		return g.listen(c, s), false
	}
	length := int(int32(c.args[2]))
	if length < 0 || length > maxSocketAddress {
		return unix.EINVAL, false
	}
	var address socketAddress
	if length > 0 {
		if address, err = c.memory(c.args[1], length); err != nil {
			return unix.EFAULT, false
		}
	}
	if !g.listener.waits(c) { // what was read may be of another process by now
		return 0, true
	}
	return g.connect(c, s, address), false
}

// listen lets sockets of the server's network listen, and none of the host's.
func (g *gate) listen(c *call, s *callerSocket) syscall.Errno {
	if !g.listener.waits(c) || s.network == g.host {
		return unix.EACCES
	}
	return errnoOrNone(unix.Listen(s.fd, int(int32(c.args[1]))))
}

// connect connects the caller's socket.
func (g *gate) connect(c *call, s *callerSocket, address socketAddress) syscall.Errno {
	if s.network == g.host {
		if errno, done := s.connectedBefore(address); done {
			return errno
		}
	}
	to, isIP := address.ip()
	switch {
	case address.family() == unix.AF_UNIX:
		return unix.ECONNREFUSED // a path or a name would be looked up here, in the host's
	case !isIP || !s.isTCP():
		return g.inside(s, address) // which leads nowhere
	}
	addr := to.Addr().Unmap()
	verdict := g.policy.Judge(to, g.names.NamesOf(addr), ownAddress(addr))
	switch {
	case verdict.ByName && compares(to.Port()):
		return g.relayed(c, s, to)
	case verdict.Allowed:
		return g.outside(c, s, to)
	case reach.Local(addr):
		errno := g.inside(s, address)
		if errno == unix.ECONNREFUSED || errno == unix.EINPROGRESS && s.state() == tcpClosed {
			g.refuse(to, "nothing of the server's own listens there, and its network has no other loopback interface")
		}
		return errno
	}
	g.refuse(to, verdict.Why)
	return unix.EACCES
}

// inside makes the call in the server's own network.
func (g *gate) inside(s *callerSocket, address socketAddress) syscall.Errno {
	if s.network == g.host {
		return unix.EACCES
	}
	return address.connect(s.fd)
}

// refuse notes that a connection was refused.
func (g *gate) refuse(to netip.AddrPort, why string) {
	r := Refusal{Host: to.Addr().Unmap().String(), Port: to.Port(), Why: why}
	if names := g.names.NamesOf(to.Addr().Unmap()); len(names) > 0 {
		r.Host, r.Why = names[len(names)-1], fmt.Sprintf("%s (%s)", why, to.Addr().Unmap())
	}
	g.refusals.add(r)
}

// errnoOrNone is errnoOf an error that may be none.
func errnoOrNone(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	return errnoOf(err)
}
