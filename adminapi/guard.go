// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A caller is who a request came from.
type caller struct {
	principal string // tells callers apart: "local", "open", "token:ID"
	role      Role   // RoleAdmin for the socket
	mcp       bool   // may use the MCP endpoints
	admin     bool   // may use the admin routes
}

type callerKey struct{}

// localPrincipal is who comes over the socket.
const localPrincipal = "local"

// callerOf returns who a request came from; nobody when it passed no door.
func callerOf(r *http.Request) caller {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c
}

// principal names the caller of a request for the gateway's sessions.
func principal(r *http.Request) string { return callerOf(r).principal }

// local lets everything in, as the owner: the socket has looked at the peer.
func local(next http.Handler) http.Handler {
	owner := caller{principal: localPrincipal, role: RoleAdmin, mcp: true, admin: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, owner)))
	})
}

// A door is what stands before the routes at a TCP address.
type door struct {
	tokens *Tokens // nil lets everybody in
	hosts  []string
}

// guard refuses what a browser on a foreign page could send, and then looks at
// the token.
func (d *door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if err := d.fromBrowser(r); err != nil {
			writeError(w, err)
			return
		}
		c, err := d.identify(r)
		if err != nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="garra"`)
			writeError(w, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// secure sets the headers that every answer has.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// fromBrowser refuses a foreign Host (a name that an attacker's DNS points
// here), a foreign Origin, and fetches that another site began (Fetch Metadata,
// W3C).
func (d *door) fromBrowser(r *http.Request) error {
	if !d.known(r.Host) {
		return errorf(http.StatusForbidden, "http.host",
			"use 127.0.0.1 or localhost, or start garra with --allowed-host",
			"the Host header %.60q is not this gateway's", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		from, err := url.Parse(origin)
		if err != nil || from.User != nil || from.Scheme == "" || !d.known(from.Host) {
			return errorf(http.StatusForbidden, "http.origin",
				"MCP clients send no Origin; a web page of yours needs --allowed-host",
				"the Origin %.60q is foreign", origin)
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	return errorf(http.StatusForbidden, "http.cross_site", "", "a cross-site fetch")
}

// known reports whether a host, with or without a port, names this gateway.
func (d *door) known(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(strings.ToLower(name), "[]")
	if name == "localhost" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(d.hosts, func(host string) bool { return strings.EqualFold(host, name) })
}

// identify tells who presents the request's token. A request without one is
// nobody, whom only the open routes serve.
func (d *door) identify(r *http.Request) (caller, error) {
	if d.tokens == nil {
		return caller{principal: "open", role: RoleAdmin, mcp: true, admin: true}, nil
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return caller{}, nil
	}
	scheme, secret, _ := strings.Cut(header, " ")
	token, ok := d.tokens.Find(strings.TrimSpace(secret))
	if !strings.EqualFold(scheme, "Bearer") || !ok {
		return caller{}, errorf(http.StatusUnauthorized, "auth.token",
			"make one with `garra token create`", "the token is not known")
	}
	return caller{
		principal: tokenPrincipal(token.ID), role: token.Role,
		mcp: token.Role == RoleClient, admin: token.Role != RoleClient,
	}, nil
}

// tokenPrincipal names the holder of a token.
func tokenPrincipal(id string) string { return "token:" + id }

// needsClient lets client tokens through to the MCP endpoints.
func needsClient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(r)
		if err := c.check(c.mcp, "make one with `garra token create --client NAME`",
			"the MCP endpoints take a client token"); err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// needs lets through who has at least a role.
func needs(role Role, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(r)
		err := c.check(c.admin && c.role.rank() >= role.rank(),
			"make one with `garra token create --role "+string(role)+"`",
			"this route takes an admin token of role "+string(role)+" or above")
		if err != nil {
			refuse(w, err)
			return
		}
		next(w, r)
	}
}

// check tells a caller without a token from one with the wrong one.
func (c caller) check(allowed bool, fix, message string) *Error {
	switch {
	case allowed:
		return nil
	case c.principal == "":
		return errorf(http.StatusUnauthorized, "auth.required", fix, "%s", message)
	}
	return errorf(http.StatusForbidden, "auth.role", fix, "%s", message)
}

func refuse(w http.ResponseWriter, e *Error) {
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="garra"`)
	}
	writeError(w, e)
}
