// SPDX-License-Identifier: Apache-2.0

// Package nameserver answers DNS questions of programs whose network is confined. It
// asks a resolver of the host, tells only what may be reached, and remembers which
// names it told an address of: a connection is made to an address, and the list that
// it is compared with has names.
package nameserver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/garraia/garra/internal/reach"
)

const (
	keptFor     = 30 * time.Second // an answer by who asked
	lookupTime  = 10 * time.Second
	maxLookups  = 64 // at the same time; more are answered with a failure
	maxTold     = 32 // addresses of one name
	idleTime    = 10 * time.Second
	maxSessions = 16 // connections at the same time
)

// Options are what a Server needs.
type Options struct {
	Policy *reach.Policy
	// Lookup returns the addresses of a name; net.Resolver's LookupNetIP for "ip" is one.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Own reports whether an address is one of the host.
	Own func(netip.Addr) bool
	// Refused is told of names that are not answered, with the reason. It must not block.
	Refused func(name, why string)
}

// A Server answers questions. It is safe for concurrent use.
type Server struct {
	options  Options
	memory   *memory
	lookups  chan struct{} // has an item for each lookup
	sessions chan struct{} // and for each connection
}

// New returns a server.
func New(options Options) *Server {
	return &Server{
		options: options, memory: newMemory(),
		lookups: make(chan struct{}, maxLookups), sessions: make(chan struct{}, maxSessions),
	}
}

// NamesOf returns the names that were told to have an address.
func (s *Server) NamesOf(addr netip.Addr) []string { return s.memory.names(addr.Unmap()) }

// ServePackets answers what comes until the socket is closed, and then waits for the
// last answers.
func (s *Server) ServePackets(conn net.PacketConn) {
	var answers sync.WaitGroup
	defer answers.Wait()
	buffer := make([]byte, largestSize)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one packet
		}
		if !isQuestion(buffer[:n]) {
			continue
		}
		message := slices.Clone(buffer[:n])
		answers.Go(func() { _, _ = conn.WriteTo(s.answer(message, true), from) })
	}
}

// ServeConns does so for connections, which have longer answers.
func (s *Server) ServeConns(listener net.Listener) {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		s.sessions <- struct{}{}
		sessions.Go(func() {
			s.serve(conn)
			<-s.sessions
		})
	}
}

// serve answers questions, each with its length before it, one after the other.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	for {
		if err := conn.SetDeadline(time.Now().Add(idleTime)); err != nil {
			return
		}
		var length [2]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		message := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		if !isQuestion(message) {
			return
		}
		answer := s.answer(message, false)
		if err := conn.SetDeadline(time.Now().Add(idleTime)); err != nil {
			return
		}
		if _, err := conn.Write(binary.BigEndian.AppendUint16(nil, uint16(len(answer)))); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// answer answers one question. An answer in one packet may have to be short.
func (s *Server) answer(message []byte, packet bool) []byte {
	q, err := parseQuestion(message)
	size := 1<<16 - 1
	if packet {
		size = q.size
	}
	switch {
	case err != nil:
		return q.answer(formatError, nil, size)
	case !q.query:
		return q.answer(unsupported, nil, size)
	case q.class != classINET || q.name == "":
		return q.answer(refused, nil, size)
	case !s.options.Policy.Asks(q.name):
		s.options.Refused(q.name, "it is not on the list")
		return q.answer(refused, nil, size)
	case q.kind != typeA && q.kind != typeAAAA:
		return q.answer(success, nil, size) // there is such a name, and it has nothing of that type
	}
	addrs, code := s.lookUp(q.name)
	return q.answer(code, slices.DeleteFunc(addrs, func(addr netip.Addr) bool {
		return addr.Is4() != (q.kind == typeA)
	}), size)
}

// lookUp returns the addresses of a name that may be told, and remembers them.
func (s *Server) lookUp(name string) ([]netip.Addr, rcode) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
	default:
		return nil, failure
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	found, err := s.options.Lookup(ctx, name)
	if err != nil {
		if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
			return nil, noSuchName
		}
		return nil, failure
	}
	var told []netip.Addr
	for _, addr := range found {
		addr = addr.Unmap().WithZone("")
		if len(told) < maxTold && s.options.Policy.Tells(name, addr, s.options.Own(addr)) {
			s.memory.note(reach.Canonical(name), addr)
			told = append(told, addr)
		}
	}
	if len(told) == 0 {
		s.options.Refused(name, "none of its addresses may be reached")
	}
	return told, success
}
