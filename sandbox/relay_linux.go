// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A relay stands in between of a connection that a list allows by its name, at a port where
// TLS is spoken. One address serves the sites of many, so that the address of a name that
// is listed may be that of others too; which one is meant is what the program asks TLS
// for (RFC 6066, server_name), and that is looked at before anything is sent. No other
// connection has anybody in between: without a name there is nothing to compare, and
// where no TLS is spoken nothing says a name that the address doesn't.
//
// After that the kernel moves the bytes (splice(2)).

const (
	maxRelays = 1024             // of one server, at a time
	helloTime = 60 * time.Second // for a program to begin with TLS; some connect ahead of need
	dialTime  = 2 * time.Minute
	// dialPatience is how long a caller waits for a connection that didn't want to. Most are
	// made, or refused, within that, and the caller is told the truth; a longer one seems to
	// be made, and breaks if it fails.
	dialPatience = 100 * time.Millisecond
)

// tlsPorts are those at which nothing but TLS is spoken, from the first byte on.
func tlsPorts() []uint16 { return []uint16{443, 465, 636, 853, 990, 993, 995, 5061, 5671, 8443, 8883} }

// dialled is a connection that is being made.
type dialled struct {
	conn net.Conn
	err  error
	done chan struct{} // closed when one of them is there
}

// relayed is outside with a relay in between.
func (g *gate) relayed(c *call, s *callerSocket, to netip.AddrPort) syscall.Errno {
	select {
	case g.relays <- struct{}{}:
	default:
		return unix.EMFILE
	}
	leave := func() { <-g.relays }
	flags, err := c.fileFlags()
	if err != nil {
		leave()
		return unix.EACCES
	}
	d := dialOutside(to)
	if errno := d.await(flags&unix.O_NONBLOCK == 0); errno != 0 {
		leave()
		return errno
	}
	near, theirs, err := connectedPair(s)
	if err != nil {
		go d.drop() // ends with the dial
		leave()
		return errnoOf(err)
	}
	defer unix.Close(theirs)
	err = unix.SetNonblock(theirs, flags&unix.O_NONBLOCK != 0)
	if err == nil {
		err = g.listener.replace(c, theirs, int(int32(c.args[0])), flags&unix.O_CLOEXEC != 0)
	}
	go func() { // ends with the connection, which is the caller's
		defer leave()
		defer near.Close()
		defer d.drop()
		if err == nil {
			g.relay(near, d, to)
		}
	}()
	return errnoOrNone(err)
}

// dialOutside begins to connect to an address.
func dialOutside(to netip.AddrPort) *dialled {
	d := &dialled{done: make(chan struct{})}
	go func() { // ends within dialTime; whoever uses d waits for done
		defer close(d.done)
		dialer := net.Dialer{Timeout: dialTime}
		d.conn, d.err = dialer.DialContext(context.Background(), "tcp", to.String())
	}()
	return d
}

// await returns why the connection failed, if it did: at once, or in the time that a caller
// has who doesn't want to wait.
func (d *dialled) await(patient bool) syscall.Errno {
	var impatience <-chan time.Time
	if !patient {
		impatience = time.After(dialPatience)
	}
	select {
	case <-d.done:
		if d.err != nil {
			return dialErrno(d.err)
		}
	case <-impatience:
	}
	return 0
}

func dialErrno(err error) syscall.Errno {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return unix.ETIMEDOUT
	}
	return errnoOf(err)
}

// drop closes the connection once it is there.
func (d *dialled) drop() {
	<-d.done
	if d.conn != nil {
		d.conn.Close()
	}
}

// connectedPair returns the ends of a TCP connection: the launcher's, and one of the kind
// that the caller has, with its options.
func connectedPair(s *callerSocket) (near *net.TCPConn, theirs int, err error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, 0, err
	}
	defer l.Close()
	theirs, err = unix.Socket(s.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return nil, 0, err
	}
	copyOptions(s.fd, theirs)
	err = unix.Connect(theirs, sockaddr(s.family, l.Addr().(*net.TCPAddr).AddrPort()))
	if err == nil {
		near, err = acceptFrom(l, theirs)
	}
	if err != nil {
		unix.Close(theirs)
		return nil, 0, err
	}
	return near, theirs, nil
}

// acceptFrom accepts the connection of a socket, and no other: any program of the host can
// connect to a port of its loopback interface.
func acceptFrom(l *net.TCPListener, socket int) (*net.TCPConn, error) {
	address, err := unix.Getsockname(socket)
	if err != nil {
		return nil, err
	}
	port := 0
	switch at := address.(type) {
	case *unix.SockaddrInet4:
		port = at.Port
	case *unix.SockaddrInet6:
		port = at.Port
	}
	for {
		conn, err := l.AcceptTCP()
		if err != nil || conn.RemoteAddr().(*net.TCPAddr).Port == port {
			return conn, err
		}
		conn.Close()
	}
}

// relay looks at what the program begins with, and then moves bytes in both directions
// until each has ended.
func (g *gate) relay(near *net.TCPConn, d *dialled, to netip.AddrPort) {
	name, begun, why := greeting(near)
	if why == "" && !g.policy.Names(name, to.Port()) {
		why = "the server that it asks TLS for is not on the list"
	}
	if why != "" {
		if len(begun) > 0 { // else the program changed its mind
			g.refuseName(name, to, why)
		}
		_ = near.SetLinger(0) // which the program sees as a reset
		return
	}
	<-d.done
	far, ok := d.conn.(*net.TCPConn)
	if !ok {
		_ = near.SetLinger(0)
		return
	}
	if _, err := far.Write(begun); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { move(near, far) })
	move(far, near)
	back.Wait()
}

// refuseName notes that a connection ends since the program asked TLS for a name, or for
// none.
func (g *gate) refuseName(name string, to netip.AddrPort, why string) {
	if name == "" {
		g.refuse(to, why)
		return
	}
	g.refusals.add(Refusal{Host: name, Port: to.Port(), Why: why})
}

// move copies to the end, which it passes on.
func move(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.SetLinger(0)
		to.Close()
		from.Close()
		return
	}
	_ = to.CloseWrite()
}

// greeting reads what a TLS client says first, returns all that was read of it, and the
// name of the server that it wants; or why that is none.
func greeting(conn net.Conn) (name string, begun []byte, why string) {
	_ = conn.SetReadDeadline(time.Now().Add(helloTime)) // of an open connection that can't fail
	r := &recorded{Conn: conn}
	greeted := false
	_ = tls.Server(r, &tls.Config{
		MinVersion: tls.VersionTLS10, // garra is no end of this: which version it is, is the server's to judge
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			greeted, name = true, hello.ServerName
			return nil, net.ErrClosed // it is not answered
		},
	}).HandshakeContext(context.Background())
	_ = conn.SetReadDeadline(time.Time{})
	switch {
	case !greeted:
		why = "it does not speak TLS there"
	case name == "":
		why = "it does not say which server it wants of TLS"
	}
	return name, r.begun.Bytes(), why
}

// recorded keeps what is read, and lets nothing be written.
type recorded struct {
	net.Conn
	begun bytes.Buffer
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.begun.Write(p[:n])
	return n, err
}

func (*recorded) Write(p []byte) (int, error) { return len(p), nil }

// compares reports whether the server's name is compared at a port.
func compares(port uint16) bool { return slices.Contains(tlsPorts(), port) }
