// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// playCrowd makes many connections at the same time, while others wait for one that never
// comes: more than the gate answers at a time, of callers that don't wait.
func playCrowd([]string) error {
	busy := netip.MustParseAddrPort(fmt.Sprintf("%s:%d", public, busyPort))
	for range 16 {
		stuck := sockaddr(unix.AF_INET, busy) // which connecting writes to
		fd, err := tcpSocket()
		if err != nil {
			return err
		}
		go unix.Connect(fd, stuck) // ends with this process
	}
	var wg sync.WaitGroup
	failed := make(chan error, 400)
	for i := range 400 {
		wg.Go(func() {
			if i%10 == 0 { // who gives up early
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				defer cancel()
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", public, busyPort))
				if !errors.Is(err, context.DeadlineExceeded) && !os.IsTimeout(err) {
					failed <- fmt.Errorf("the connection that never comes: %v, %w", conn, err)
				}
				return
			}
			conn, err := net.Dial("tcp", "api.example.com:"+httpPort)
			if err == nil {
				_, err = conn.Write([]byte("GET / HTTP/1.0\r\nHost: x\r\n\r\n"))
			}
			var text []byte
			if err == nil {
				text, err = io.ReadAll(conn)
			}
			if err != nil || !strings.Contains(string(text), "hello from x") {
				failed <- fmt.Errorf("%q, %w", text, err)
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		fmt.Println(err)
	}
	fmt.Println("done")
	return nil
}

func TestManyConnections(t *testing.T) {
	atUsers(t, func(t *testing.T, user uint32) {
		got := visitNetwork(t, &visit{
			Policy: Policy{Network: NetworkInternet}, Args: []string{"SELF", "crowd"}, User: user,
		})
		if got.Out != "done\n" {
			t.Errorf("%+v", got)
		}
	})
}

// playSocket looks at a socket after the gate has put another in its place.
func playSocket([]string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) // not close-on-exec
	if err != nil {
		return err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 77),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 9}),
		unix.SetNonblock(fd, true),
	)
	if err != nil {
		return err
	}
	err = unix.Connect(fd, allowedAddress())
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 10_000); err != nil {
		return err
	}
	failed, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	again := unix.Connect(fd, allowedAddress())
	descriptor, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	status, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	noDelay, _ := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	alive, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	idle, _ := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	timeout, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO)
	if err != nil {
		return err
	}
	fmt.Println(failed, again, descriptor, status&unix.O_NONBLOCK != 0, noDelay, alive, idle, timeout.Sec)
	waiting, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = unix.Connect(waiting, allowedAddress())
	descriptor, _ = unix.FcntlInt(uintptr(waiting), unix.F_GETFD, 0)
	status, _ = unix.FcntlInt(uintptr(waiting), unix.F_GETFL, 0)
	fmt.Println(err, descriptor, status&unix.O_NONBLOCK != 0, unix.Connect(999, allowedAddress()),
		unix.Connect(waiting, allowedAddress()))
	return nil
}

// The socket that the gate puts in the place of a program's is as that was.
func TestSocketsStayWhatTheyWere(t *testing.T) {
	got := visitNetwork(t, &visit{Policy: Policy{Network: NetworkInternet}, Args: []string{"SELF", "socket"}})
	want := fmt.Sprintf("0 %v 0 true 1 1 77 9\n<nil> 1 false %v %v\n", unix.EISCONN, unix.EBADF, unix.EISCONN)
	if got.Out != want {
		t.Errorf("got %q, want %q", got.Out, want)
	}
}

// playMeasure prints how long requests take, in microseconds: of small answers on new
// connections, and of 1 MiB each on one.
func playMeasure(args []string) error {
	url := args[0]
	for _, size := range []int{1, 1 << 20} {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.DisableKeepAlives = size == 1
		client := &http.Client{Transport: transport}
		best := time.Hour
		for range 9 {
			begun := time.Now()
			for range 50 {
				answer, err := client.Get(url + "?size=" + strconv.Itoa(size))
				if err != nil {
					return err
				}
				if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != int64(size) {
					return fmt.Errorf("%d of %d bytes: %w", n, size, err)
				}
				answer.Body.Close()
			}
			best = min(best, time.Since(begun)/50)
		}
		fmt.Println(best.Microseconds())
	}
	return nil
}

// BenchmarkGate says what the gate costs: microseconds for a request on a connection of its
// own, and for 1 MiB, with a list and without any confinement of the network.
func BenchmarkGate(b *testing.B) {
	if os.Geteuid() != 0 || try(LevelNamespaces) != nil {
		b.Skip("needs root and namespaces")
	}
	for name, policy := range map[string]Policy{
		"all":  {Network: NetworkAll},
		"list": {Network: NetworkListed, Hosts: []string{public + ":" + httpPort}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got := visitNetwork(b, &visit{
					Policy: policy, Args: []string{"SELF", "measure", "http://" + public + ":HTTP/"},
				})
				for i, unit := range []string{"µs/connection", "µs/MiB"} {
					micros, err := strconv.ParseFloat(strings.Fields(got.Out)[i], 64)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(micros, unit)
				}
			}
		})
	}
}
