// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

// HandOver stops listening, as StopListening does, where another process listens already.
// What comes on connections that are still open is that one's, but for what belongs to
// sessions of this one.
func (s *Server) HandOver() {
	s.succeeded.Store(true)
	s.StopListening()
}

// lingerEvery is how often is looked whether all connections are gone.
const lingerEvery = 20 * time.Millisecond

// Linger ends pipes and event streams, and goes on to pass on what comes on connections
// that clients have kept open, until there is none any more, or ctx ends: to close one
// just when its client uses it would lose a request.
func (s *Server) Linger(ctx context.Context) {
	s.end()
	tick := time.NewTicker(lingerEvery)
	defer tick.Stop()
	for s.open.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// forwarded passes on what is the successor's, once there is one: a client on a connection
// that it has kept open must not be sent away for that. A request that names a session is
// answered here, since it may be about a call that runs here.
func (s *Server) forwarded(next http.Handler, at net.Addr, secure bool) http.Handler {
	successor := toListener(at, secure)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.succeeded.Load() && r.Header.Get("Mcp-Session-Id") == "" {
			successor.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// toListener passes requests on, as they are, to whoever listens at an address of this
// machine.
func toListener(at net.Addr, secure bool) http.Handler {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = scheme, "successor", r.In.Host
		},
		Transport: &http.Transport{
			// An unspecified address is this machine to package net.
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, at.Network(), at.String())
			},
			DisableKeepAlives: true, DisableCompression: true,
			// Who has this process's own socket needs no other proof, and its name is for
			// clients.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		},
		FlushInterval: -1, // event streams
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			writeError(w, errorf(http.StatusBadGateway, "gateway.away", "try again",
				"another gateway has taken the place of this one and does not answer: %v", err))
		},
	}
}
