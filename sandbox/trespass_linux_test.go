// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A trespass is one way past a server's policy, tried by a program inside. It returns nil
// when it got there.
type trespass struct {
	name string
	try  func() error
}

// trespasses are ways to what neither the internet nor any list of the test has.
func trespasses() []trespass {
	tcp := func(address string) func() error {
		return func() error { return dial("tcp", address) }
	}
	return []trespass{
		{"the host's loopback", tcp("127.0.0.1:" + httpPort)},
		{"another address of it", tcp("127.8.8.8:" + httpPort)},
		{"no address", tcp("0.0.0.0:" + httpPort)},
		{"loopback as IPv6 writes it", func() error { return dialMapped(httpPort) }},
		{"loopback by a waiting socket", func() error { return connectPatiently("127.0.0.1") }},
		{"an address of the host", tcp(publicOwn + ":" + httpPort)},
		{"a private one of it", tcp(privateOwn + ":" + httpPort)},
		{"a private network", tcp(private + ":" + httpPort)},
		{"what clouds tell their machines", tcp(metadata + ":80")},
		{"a private network by a waiting socket", func() error { return connectPatiently(private) }},
		{"a name of loopback", tcp("rebound.example.com:" + httpPort)},
		{"a name of the metadata", tcp("meta.example.com:" + httpPort)},
		{"UDP", func() error { return askEcho(public + ":9999") }},
		{"UDP to the host", func() error { return askEcho("127.0.0.1:9999") }},
		{"a packet without a connection", sendPacket},
		{"MPTCP", socketTo(unix.IPPROTO_MPTCP)},
		{"a connection by its first data", fastOpen},
		{"a host's socket that is taken apart", takeApart},
		{"a host's socket that listens", listenOutside},
		{"a race with the address", func() error { return raceAddress() }},
		{"a race with the socket", func() error { return raceSocket() }},
	}
}

// playTrespass tries all and prints which got there.
func playTrespass([]string) error {
	for _, t := range trespasses() {
		if err := t.try(); err == nil {
			fmt.Printf("reached: %s\n", t.name)
		} else {
			fmt.Fprintf(os.Stderr, "not %s: %v\n", t.name, err)
		}
	}
	return nil
}

// askEcho wants an answer to a packet.
func askEcho(address string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func sendPacket() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, sockaddr(unix.AF_INET, netip.MustParseAddrPort(public+":9999")))
}

func tcpSocket() (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

func socketTo(protocol int) func() error {
	return func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, sockaddr(unix.AF_INET, netip.MustParseAddrPort(private+":"+httpPort)))
	}
}

// connectPatiently connects with a socket that waits, as programs in C do.
func connectPatiently(address string) error {
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, sockaddr(unix.AF_INET, netip.MustParseAddrPort(address+":"+httpPort)))
}

func fastOpen() error {
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN,
		sockaddr(unix.AF_INET, netip.MustParseAddrPort(private+":"+httpPort)))
}

// allowedAddress is what every policy of the test lets a server connect to.
func allowedAddress() unix.Sockaddr {
	return sockaddr(unix.AF_INET, netip.MustParseAddrPort(public+":"+httpPort))
}

// hostSocket returns a socket of the host's network, connected as it may be.
func hostSocket() (int, error) {
	fd, err := tcpSocket()
	if err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, allowedAddress()); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("what it may do: %w", err)
	}
	return fd, nil
}

// disconnect is connect(2) to nobody (AF_UNSPEC).
func disconnect(fd int) error { return errnoNil(socketAddress(make([]byte, 16)).connect(fd)) }

func errnoNil(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// takeApart disconnects a socket that was connected as it may be, for another connection.
func takeApart() error {
	fd, err := hostSocket()
	if err != nil {
		return nil // the test can't be made, which must not look as a refusal
	}
	defer unix.Close(fd)
	if err := disconnect(fd); err != nil {
		return err
	}
	return unix.Connect(fd, sockaddr(unix.AF_INET, netip.MustParseAddrPort(private+":"+httpPort)))
}

// listenOutside has a socket of the host's network listen there, which a program can make
// free again by shutting it down while it connects.
func listenOutside() error {
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	busy := sockaddr(unix.AF_INET, netip.MustParseAddrPort(fmt.Sprintf("%s:%d", public, busyPort)))
	if err := unix.Connect(fd, busy); !errors.Is(err, unix.EINPROGRESS) {
		return nil // the test can't be made, which must not look as a refusal
	}
	_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	return unix.Listen(fd, 1)
}

const racing = 2 * time.Second

// raceAddress changes the address while the call that has it is looked at.
func raceAddress() error {
	good := netip.MustParseAddr(public).As4()
	address := make(socketAddress, unix.SizeofSockaddrInet4)
	copy(address, []byte{unix.AF_INET, 0, byte(8080 >> 8), 8080 & 0xff, good[0], good[1], good[2], good[3]})
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { // ends when stop is set, before the function
		for bad := netip.MustParseAddr(private).As4(); !stop.Load(); {
			copy(address[4:], bad[:])
			copy(address[4:], good[:])
		}
	})
	defer func() { stop.Store(true); wg.Wait() }()
	for end := time.Now().Add(racing); time.Now().Before(end); {
		fd, err := tcpSocket()
		if err != nil {
			return err
		}
		errno := address.connect(fd)
		peer, _ := unix.Getpeername(fd)
		unix.Close(fd)
		if at, ok := peer.(*unix.SockaddrInet4); ok && errno == 0 && at.Addr != good {
			return nil
		}
	}
	return errNoEscape
}

// raceSocket puts a socket of the host's network in the place of one of its own while a
// connection of that to its own loopback interface is looked at: were the kernel to go on
// with the call, it would be made in the host's network.
func raceSocket() error {
	host, err := hostSocket()
	if err != nil {
		return nil
	}
	own, err := tcpSocket()
	if err != nil {
		return err
	}
	at, err := unix.Dup(own)
	if err != nil {
		return err
	}
	defer func() { unix.Close(host); unix.Close(own); unix.Close(at) }()
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { // ends when stop is set, before the function
		for !stop.Load() {
			_ = unix.Dup3(host, at, 0)
			_ = unix.Dup3(own, at, 0)
		}
	})
	defer func() { stop.Store(true); wg.Wait() }()
	for end := time.Now().Add(racing); time.Now().Before(end); {
		_ = disconnect(at)
		if _, err := unix.Getpeername(host); err != nil {
			return nil // it was taken apart
		}
		// Nothing of its own listens there, but the host's server does.
		if err := unix.Connect(at, sockaddr(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:"+httpPort))); err == nil {
			return nil
		}
	}
	return errNoEscape
}

func TestServersReachNothingElse(t *testing.T) {
	atUsers(t, func(t *testing.T, user uint32) {
		for _, policy := range []Policy{
			{Network: NetworkInternet},
			{Network: NetworkListed, Hosts: []string{
				public + ":" + httpPort, fmt.Sprintf("%s:%d", public, busyPort), "rebound.example.com:" + httpPort,
				"*.example.com:" + httpPort, "localhost:1",
			}},
		} {
			got := visitNetwork(t, &visit{Policy: policy, Args: []string{"SELF", "trespass"}, User: user})
			if got.Code != 0 || strings.Contains(got.Out, "reached: ") {
				t.Errorf("network %s: exit status %d, %s", policy.Network, got.Code, got.Out)
			}
			for _, want := range []Refusal{
				{Host: "127.0.0.1", Port: 8080},
				{Host: private, Port: 8080},
				{Host: metadata, Port: 80},
				{Host: "rebound.example.com"},
			} {
				if !slices.ContainsFunc(got.Refusals, func(r Refusal) bool {
					return r.Host == want.Host && r.Port == want.Port && r.Why != ""
				}) {
					t.Errorf("network %s: nothing tells of %q, port %d", policy.Network, want.Host, want.Port)
				}
			}
		}
	})
}

// What the trespasses try succeeds where nothing keeps them from it, but for the races,
// which are then none, and what no server is ever refused.
func TestTrespassesAreReal(t *testing.T) {
	got := visitNetwork(t, &visit{Policy: Policy{Network: NetworkAll}, Args: []string{"SELF", "trespass"}})
	for _, trespass := range trespasses() {
		reached := strings.Contains(got.Out, "reached: "+trespass.name+"\n")
		never := slices.Contains([]string{
			"what clouds tell their machines", // nothing answers at that port
			"MPTCP", "a race with the address", "a connection by its first data",
		}, trespass.name)
		if !reached && !never {
			t.Errorf("%s is not reached where everything may be", trespass.name)
		}
	}
}

// What a list names is reached, and nothing else.
func TestLists(t *testing.T) {
	for _, c := range []struct {
		hosts, url string
		want       bool
	}{
		{"api.example.com:8080", "http://api.example.com:HTTP", true},
		{"api.example.com:8080", "http://API.example.com.:HTTP", true},
		{"api.example.com:8081", "http://api.example.com:HTTP", false},
		{"api.example.com:8080", "http://other.example.com:HTTP", false},
		{"api.example.com:8080", "http://8.8.8.8:HTTP", false},
		{"*.example.com:8080", "http://other.example.com:HTTP", true},
		{"8.8.8.8:8080", "http://8.8.8.8:HTTP", true},
		{"8.8.8.8:8080", "http://api.example.com:HTTP", false}, // the name is not on the list
		{"8.8.8.0/24:8080", "http://8.8.8.9:HTTP", true},
		{"db.internal:8080", "http://db.internal:HTTP", true},
		{"*.internal:8080", "http://db.internal:HTTP", false},
		{"localhost:8080", "http://localhost:HTTP", true},
		{"localhost:8080", "http://127.0.0.1:HTTP", true},
		{"127.0.0.2:8080", "http://127.0.0.2:HTTP", true},
		{"127.0.0.2:8080", "http://127.0.0.1:HTTP", false},
	} {
		policy := Policy{Network: NetworkListed, Hosts: []string{c.hosts}}
		got := visitNetwork(t, &visit{Policy: policy, Args: []string{"SELF", "fetch", c.url}})
		if reached := got.Code == 0; reached != c.want || reached == (len(got.Refusals) > 0) {
			t.Errorf("%s with %s: %+v", c.url, c.hosts, got)
		}
	}
}
