// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"github.com/garraia/garra/internal/reach"
)

// A guard makes connections, and only to addresses that a server may have. It
// is safe for concurrent use.
type guard struct {
	private bool   // any address will do
	home    string // the host of the entry's url, when others name what is connected to; else empty
	dialer  net.Dialer
	proxies sync.Map // addresses ("host:port") of proxies that the environment names
}

// A forbiddenError is why an address is not connected to.
type forbiddenError struct {
	host string // as the url has it
	addr netip.Addr
}

// Error implements error.
func (e *forbiddenError) Error() string {
	return fmt.Sprintf("%q has the address %s, which is not on the internet", e.host, e.addr)
}

func newGuard(options *Options, private bool) *guard {
	return &guard{private: private, dialer: net.Dialer{Timeout: options.limits.dial, Resolver: options.resolver}}
}

// proxy is the proxy of a request, from the environment. Whoever set it chose
// its address, so that is not looked at.
func (g *guard) proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil && err == nil {
		g.proxies.Store(net.JoinHostPort(u.Hostname(), proxyPort(u)), true)
	}
	return u, err
}

// proxyPort is the port of a proxy as net/http takes it.
func proxyPort(u *url.URL) string {
	if u.Port() == "" && strings.HasPrefix(u.Scheme, "socks5") {
		return "1080"
	}
	return port(u)
}

// dial connects to an address of a url. It looks at the address that the name
// was resolved to, right before the connection is made.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := g.dialer
	if _, chosen := g.proxies.Load(address); chosen || g.private {
		return d.DialContext(ctx, network, address)
	}
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(resolved)
		if err != nil {
			return err
		}
		if !g.allows(name, to.Addr()) {
			return &forbiddenError{host: name, addr: to.Addr()}
		}
		return nil
	}
	return d.DialContext(ctx, network, address)
}

// allows is allowed for what the entry's url names. What the server names is on
// the internet, or on this machine where the server is too.
func (g *guard) allows(host string, addr netip.Addr) bool {
	switch {
	case g.home == "" || strings.EqualFold(host, g.home):
		return allowed(host, addr)
	case isHere(g.home) && isHere(host):
		return addr.Unmap().IsLoopback()
	}
	return reach.Public(addr)
}

// isHere reports whether a host of a url is this machine.
func isHere(host string) bool {
	ip, _ := netip.ParseAddr(host) // the zero address for a name
	return ip.Unmap().IsLoopback() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

// allowed reports whether a connection to a host of a url may go to an address
// that it was resolved to: one that the internet routes; one that the url itself
// names; or, for localhost, this machine.
func allowed(host string, addr netip.Addr) bool {
	addr = addr.Unmap()
	if literal, err := netip.ParseAddr(host); err == nil {
		return literal.Unmap() == addr
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return addr.IsLoopback()
	}
	return reach.Public(addr)
}
