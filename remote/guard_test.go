// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/source"
)

// An address that isn't public is for a url that names it, and no other.
func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, addr string
		want       bool
	}{
		{"example.com", "1.1.1.1", true},
		{"example.com", "10.0.0.1", false},
		{"example.com", "127.0.0.1", false},
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "1.1.1.1", false},
		{"169.254.169.254", "169.254.169.254", true},
		{"::1", "::1", true},
		{"127.0.0.1", "::ffff:127.0.0.1", true},
		{"localhost", "127.0.0.1", true},
		{"LocalHost.", "::1", true},
		{"localhost", "10.0.0.1", false},
		{"localhost", "1.1.1.1", false},
		{"localhost.example.com", "127.0.0.1", false},
		{"2130706433", "127.0.0.1", false},
		{"0x7f.1", "127.0.0.1", false},
		{"127.1", "127.0.0.1", false},
	} {
		if got := allowed(c.host, netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%s at %s: %v", c.host, c.addr, got)
		}
	}
}

// A name that is resolved to an address of this machine is not connected to,
// whatever it was resolved to before.
func TestForbiddenAddress(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{})
	_, port, _ := net.SplitHostPort(w.Listener.Addr().String())
	r := newRig(t, resolving("127.0.0.1"), limited(func(l *limits) { l.recheck = time.Hour }))
	r.add(at("http://rebound.example:" + port))
	f := r.state("s", source.Failed).LastError
	contains(t, f.Error(), `"rebound.example" has the address 127.0.0.1`, "set allowPrivateAddresses")
	if n := w.seen(http.MethodPost); n > 0 {
		t.Errorf("%d requests came", n)
	}
}

// resolving makes every name have that address.
func resolving(address string) func(*Options) {
	return func(o *Options) {
		o.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go nameserver(theirs, netip.MustParseAddr(address)) // ends when the resolver closes its end
			return ours, nil
		}}
	}
}

// nameserver answers one query over TCP (RFC 1035, section 4.2.2): that there is
// such an A record, and nothing for any other type.
func nameserver(conn net.Conn, address netip.Addr) {
	defer conn.Close()
	query := make([]byte, 1500)
	n, err := conn.Read(query)
	if err != nil || n == 2 { // the length came alone
		if n, err = conn.Read(query[2:]); err != nil {
			return
		}
		n += 2
	}
	question := query[14:n]
	end := strings.IndexByte(string(question), 0) + 5 // the name, type and class
	isA := question[end-3] == 1
	answer := append([]byte{query[2], query[3], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question[:end]...)
	if isA {
		answer[7] = 1
		ip := address.As4()
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4)
		answer = append(answer, ip[:]...)
	}
	_, _ = conn.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...))
}

// A proxy of the environment may have any address.
func TestProxies(t *testing.T) {
	t.Parallel()
	limits := quick()
	g := newGuard(&Options{limits: &limits}, false)
	accepting := listen(t, "127.0.0.1:0")
	defer accepting.Close()
	_, port, _ := net.SplitHostPort(accepting.Addr().String())
	address := net.JoinHostPort("proxy.example", port)
	g.dialer.Resolver = func() *net.Resolver {
		o := &Options{}
		resolving("127.0.0.1")(o)
		return o.resolver
	}()
	if _, err := g.dial(t.Context(), "tcp", address); !errors.As(err, new(*forbiddenError)) {
		t.Errorf("before it is a proxy: %v", err)
	}
	g.private = true // as allowPrivateAddresses says
	if conn, err := g.dial(t.Context(), "tcp", address); err != nil {
		t.Errorf("a private address that is allowed: %v", err)
	} else {
		_ = conn.Close()
	}
	g.private = false
	g.proxies.Store(address, true)
	conn, err := g.dial(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	for text, want := range map[string]string{
		"http://p": "80", "https://p": "443", "socks5://p": "1080", "socks5h://p": "1080", "http://p:3128": "3128",
	} {
		u, _ := url.Parse(text)
		if got := proxyPort(u); got != want {
			t.Errorf("%s: port %s, want %s", text, got, want)
		}
	}
}

// Certificates are verified.
func TestCertificates(t *testing.T) {
	t.Parallel()
	w := httptest.NewUnstartedServer(&script{call: func(w http.ResponseWriter, r *http.Request, id Raw) {
		answerJSON(w, id, `"`+r.Proto+`"`)
	}})
	w.EnableHTTP2 = true
	w.Config.ErrorLog = discard()
	w.StartTLS()
	t.Cleanup(w.Close)
	r := newRig(t, limited(func(l *limits) { l.recheck = time.Hour }))
	r.add(at(w.URL))
	f := r.state("s", source.Failed).LastError
	contains(t, f.Error(), "the certificate of "+w.URL+" is not good", "unknown authority")

	roots := x509.NewCertPool()
	roots.AddCert(w.Certificate())
	trusting := newRig(t, func(o *Options) { o.tls = &tls.Config{RootCAs: roots} }) //nolint:gosec // tests
	result, err := trusting.only(at(w.URL)).Call(t.Context(), tool("x", nil))
	if err != nil || string(result) != `"HTTP/2.0"` {
		t.Errorf("%s, %v", result, err)
	}
}
