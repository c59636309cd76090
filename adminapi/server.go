// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/hangup"
)

// Limits of both doors. A response may take as long as a call does; those of
// event streams set their own deadlines.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	shutdownGrace = 3 * time.Second
)

// attachPath is where `garra stdio` asks for a pipe to the gateway: the
// connection is switched to MCP's stdio framing (RFC 9110, 7.8 Upgrade).
const attachPath = "/attach"

// attachProtocol is the name of what the connection is switched to.
const attachProtocol = "mcp-stdio"

// handoverPath is where another process asks for what this one listens on, over a
// connection that is switched to the protocol of package handover.
const (
	handoverPath     = "/handover"
	handoverProtocol = "garra-handover"
)

// A Server serves the API on the socket and at addresses. Its methods that begin and end
// that are called by one goroutine.
type Server struct {
	handler   http.Handler
	gateway   *gateway.Gateway
	handover  func(*net.UnixConn, io.Reader)
	servers   []*http.Server
	listeners []net.Listener
	leaving   atomic.Bool  // no connection is taken any more
	succeeded atomic.Bool  // another process takes those
	open      atomic.Int64 // connections
	streams   *streams
	life      context.Context // of pipes and streams
	end       context.CancelFunc
	failed    chan error
}

// Options are how a Server is reached at its address.
type Options struct {
	Tokens *Tokens     // nil lets everybody in
	Hosts  []string    // names and addresses by which clients call it, without port or brackets
	TLS    *tls.Config // nil for plain HTTP
}

// NewServer returns a Server that doesn't listen yet.
func NewServer(api *API) *Server {
	s := &Server{gateway: api.Gateway, handover: api.Handover, failed: make(chan error, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	s.streams = newStreams(s.life)
	s.handler = api.routes(s.streams)
	return s
}

// Failed gets an error when a listener breaks.
func (s *Server) Failed() <-chan error { return s.failed }

// EndStreams ends the event streams of some callers, as principals. The gateway's
// own sessions are not among them.
func (s *Server) EndStreams(whose func(principal string) bool) { s.streams.end(whose) }

// ServeSocket serves the socket; the listener must come from [ListenSocket].
func (s *Server) ServeSocket(l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+attachPath, s.attach)
	if s.handover != nil {
		mux.HandleFunc("POST "+handoverPath, s.handOver)
	}
	mux.Handle("/", s.handler)
	s.serve(local(mux), l, nil)
}

// ServeAddress serves an address.
func (s *Server) ServeAddress(l net.Listener, o Options) {
	door := &door{tokens: o.Tokens, hosts: o.Hosts}
	s.serve(s.forwarded(door.guard(s.handler), l.Addr(), o.TLS != nil), l, o.TLS)
}

// serve serves a listener with a server of its own.
func (s *Server) serve(h http.Handler, l net.Listener, config *tls.Config) {
	server := &http.Server{
		Handler: s.farewell(hurried(h)),
		// The general handler would answer OPTIONS * before any guard.
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // of single connections; nothing to do about them
	}
	server.ConnState = s.count
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	s.servers, s.listeners = append(s.servers, server), append(s.listeners, l)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	go func() { // ends with StopListening or Shutdown
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !s.leaving.Load() {
			select {
			case s.failed <- fmt.Errorf("serving %s: %w", l.Addr(), err):
			default: // one is enough to end the gateway
			}
		}
	}()
}

// count counts the connections that are open. One that was switched to another protocol is
// none any more.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// farewell has each answer of a server that leaves be the last one on its connection
// (RFC 9112, 9.6): a client that heard it doesn't send what nobody would read.
func (s *Server) farewell(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// StopListening takes no connection any more. On those that are open requests are served
// until Shutdown, one on each.
func (s *Server) StopListening() {
	s.leaving.Store(true)
	for _, l := range s.listeners {
		l.Close()
	}
}

// Shutdown stops listening, gives requests a moment and ends every connection.
func (s *Server) Shutdown(ctx context.Context) {
	s.end()
	ctx, cancel := context.WithTimeout(ctx, shutdownGrace)
	defer cancel()
	for _, server := range s.servers {
		if server.Shutdown(ctx) != nil {
			server.Close() // what is still open now is cut off
		}
	}
}

// attach makes a client's connection a pipe to the gateway.
func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	server := r.URL.Query().Get("server")
	if server != "" && !s.gateway.Has(server) {
		writeError(w, unknown(server))
		return
	}
	conn, in := upgrade(w, r, attachProtocol)
	if conn == nil {
		return
	}
	defer conn.Close()
	// What ends the pipe is shown to the client by its end.
	_ = s.gateway.ServePipe(s.life, in, conn, gateway.PipeClient{
		Server: server, Principal: principal(r), Gone: hangup.Of(conn),
	})
}

// connKey is under what the context of a request has its connection.
type connKey struct{}

// handOver lets another process of the same user take the place of this one. Root may
// come in at the socket, and gets nothing here: it would run the servers as root.
func (s *Server) handOver(w http.ResponseWriter, r *http.Request) {
	unix, ok := r.Context().Value(connKey{}).(*net.UnixConn)
	if !ok || !ofThisUser(unix) {
		writeError(w, errorf(http.StatusForbidden, "auth.socket", "run garra as that user",
			"a gateway hands over to its own user alone"))
		return
	}
	conn, in := upgrade(w, r, handoverProtocol)
	if conn == nil {
		return
	}
	defer conn.Close()
	s.handover(unix, in)
}

// upgrade switches a connection to another protocol, and returns it with what is to be
// read from it; nil when the request was answered instead.
func upgrade(w http.ResponseWriter, r *http.Request, protocol string) (net.Conn, io.Reader) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), protocol) {
		writeError(w, errorf(http.StatusUpgradeRequired, "http.upgrade", "", "this route needs Upgrade: %s", protocol))
		return nil, nil
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeError(w, err)
		return nil, nil
	}
	conn.SetDeadline(time.Time{})
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade\r\n\r\n", protocol)
	return conn, buffered.Reader
}

// ListenSocket makes the socket for its owner only. A socket that nobody answers
// on is left over from a garra that was killed, and replaced.
func ListenSocket(path string) (net.Listener, error) {
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", path, syscall.EADDRINUSE)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing a stale socket: %w", err)
	}
	l, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	return OfPeers(l), nil
}

// OfPeers is a listener that takes only connections of the user that garra runs as, and
// of root.
func OfPeers(l net.Listener) net.Listener { return &peerListener{l} }

// listenPrivate binds under a name that nobody can connect to before the mode is
// set, and then moves it into place.
func listenPrivate(path string) (net.Listener, error) {
	temp := filepath.Join(filepath.Dir(path), "s"+strconv.Itoa(os.Getpid()))
	os.Remove(temp)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", temp)
	if err != nil {
		return nil, err
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
	}
	if err = os.Chmod(temp, 0o600); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		l.Close()
		os.Remove(temp)
		return nil, err
	}
	return l, nil
}

// A peerListener is what OfPeers returns.
type peerListener struct{ net.Listener }

// SyscallConn implements syscall.Conn, by which the listener can be handed over.
func (l *peerListener) SyscallConn() (syscall.RawConn, error) {
	if c, ok := l.Listener.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Accept implements net.Listener.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if sameUser(conn) {
			return conn, nil
		}
		conn.Close()
	}
}
