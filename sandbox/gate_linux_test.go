// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A visit is one program in a server whose network is confined. It runs on an internet of
// its own, a network namespace in which everything that there is belongs to the test:
// nothing leaves the machine.
type visit struct {
	Policy Policy   `json:"policy"`
	Args   []string `json:"args"` // HTTP and TLS in them are the ports of the servers
	User   uint32   `json:"user"`
}

// A visitResult is what came of a visit.
type visitResult struct {
	Out      string    `json:"out"`
	Code     int       `json:"code"`
	Refusals []Refusal `json:"refusals"`
}

// The addresses of that internet. All of each network is answered at, and the first of
// each is the host's own.
const (
	publicOwn   = "8.8.8.1"
	public      = "8.8.8.8"
	privateOwn  = "10.99.0.1"
	private     = "10.99.0.2"
	metadata    = "169.254.169.254"
	hostsOfTest = "8.8.8.8 api.example.com other.example.com\n10.99.0.2 db.internal\n127.0.0.1 rebound.example.com\n" +
		"169.254.169.254 meta.example.com\n"
)

// Ports of that internet's web servers, with and without TLS.
const (
	httpPort = "8080"
	tlsPort  = "8443"
	busyPort = 7777 // where connecting takes forever
)

// visitNetwork runs a visit and returns what came of it. It needs root.
func visitNetwork(t testing.TB, v *visit) *visitResult {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make an internet of its own")
	}
	if err := try(LevelNamespaces); err != nil {
		t.Skipf("this machine has no namespaces: %v", err)
	}
	v.Policy.Level = LevelNamespaces
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	internet := role(t, "internet", string(text))
	internet.Path, internet.Dir = "/proc/self/exe", "/"
	var out bytes.Buffer
	internet.Stdout = &out
	if err := internet.Run(); err != nil {
		t.Fatalf("%v, after %s", err, out.String())
	}
	var result visitResult
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	t.Logf("%q: %d, %.300q, %v", v.Args, result.Code, result.Out, result.Refusals)
	return &result
}

// atUsers runs a test as root and as an ordinary user.
func atUsers(t *testing.T, test func(t *testing.T, user uint32)) {
	t.Helper()
	for name, user := range map[string]uint32{"root": 0, "user": ordinaryUser} {
		t.Run(name, func(t *testing.T) { test(t, user) })
	}
}

// playInternet makes an internet and has a host, of the visit's user, start the server.
func playInternet(args []string) error {
	runtime.LockOSThread() // what follows is for this thread, and what it starts
	folder, err := os.MkdirTemp("/tmp", "garra-internet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := makeInternet(folder); err != nil {
		return err
	}
	web := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if size, err := strconv.Atoi(r.URL.Query().Get("size")); err == nil {
			_, _ = w.Write(make([]byte, size))
			return
		}
		fmt.Fprintf(w, "hello from %s", r.Host)
	})
	for port, secure := range map[string]bool{httpPort: false, tlsPort: true} {
		l, err := net.Listen("tcp", "0.0.0.0:"+port)
		if err != nil {
			return err
		}
		s := httptest.NewUnstartedServer(web)
		s.Listener = l
		s.Config.ErrorLog = nil
		if secure {
			s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
			s.StartTLS()
		} else {
			s.Start()
		}
	}
	for _, address := range []string{"127.0.0.1", public} {
		packets, err := net.ListenPacket("udp4", address+":9999")
		if err != nil {
			return err
		}
		go echoPackets(packets) // ends with this process
	}
	if err := listenBusily(); err != nil {
		return err
	}
	var v visit
	if err := json.Unmarshal([]byte(args[0]), &v); err != nil {
		return err
	}
	host := exec.Command("/proc/self/exe")
	host.Args, host.Dir = []string{roleName, "host-visit", args[0]}, "/"
	host.Stdout, host.Stderr = os.Stdout, os.Stderr
	asUser(host, v.User)
	return host.Run()
}

// makeInternet gives this thread a network whose loopback interface has addresses of all
// kinds, and a file of hosts.
func makeInternet(folder string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for name, text := range map[string]string{"hosts": hostsOfTest, "resolv.conf": "nameserver 127.0.0.1\n"} {
		file := folder + "/" + name
		err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, 0o644),
			unix.Mount(file, "/etc/"+name, "", unix.MS_BIND, ""))
		if err != nil {
			return err
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for i, address := range []string{"127.0.0.1", publicOwn, privateOwn, "169.254.169.1"} {
		label := "lo"
		if i > 0 {
			label = fmt.Sprintf("lo:%d", i)
		}
		if err := addAddress(fd, label, net.ParseIP(address).To4(), i == 0); err != nil {
			return fmt.Errorf("adding %s: %w", address, err)
		}
	}
	return nil
}

// listenBusily listens where nobody is served, and fills the queue, so that whoever else
// connects goes on trying.
func listenBusily() error {
	at := sockaddr(unix.AF_INET, netip.MustParseAddrPort(fmt.Sprintf("%s:%d", public, busyPort)))
	listener, err := tcpSocket()
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(listener, at), unix.Listen(listener, 0)); err != nil {
		return err
	}
	for range 3 {
		fd, err := tcpSocket()
		if err != nil {
			return err
		}
		err = errors.Join(unix.SetNonblock(fd, true), unix.Connect(fd, at))
		if err != nil && !errors.Is(err, unix.EINPROGRESS) {
			return err
		}
	}
	return nil
}

// addAddress gives an interface an address, and its network.
func addAddress(fd int, label string, address net.IP, loopback bool) error {
	for _, set := range []struct {
		request uint
		value   net.IP
	}{{unix.SIOCSIFADDR, address}, {unix.SIOCSIFNETMASK, net.IP{255, 255, 255, 0}}} {
		if loopback {
			break
		}
		r, err := unix.NewIfreq(label)
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(set.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.request, r); err != nil {
			return err
		}
	}
	up, err := unix.NewIfreq(label)
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up)
}

// hostVisit starts the server of a visit and prints what came of it.
func hostVisit(args []string) error {
	var v visit
	if err := json.Unmarshal([]byte(args[0]), &v); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("/tmp", "garra-visit-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(folder+"/self", self, 0o755); err != nil {
		return err
	}
	for i, arg := range v.Args {
		v.Args[i] = strings.NewReplacer("SELF", folder+"/self", "HTTP", httpPort, "TLS", tlsPort).Replace(arg)
	}
	v.Policy.Write = append(v.Policy.Write, folder)
	v.Policy.Read = append(v.Policy.Read, "/root/.pyenv")
	out, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var result visitResult
	path, err := exec.LookPath(v.Args[0])
	if err != nil {
		return err
	}
	argv := v.Args
	if v.Args[0] == folder+"/self" {
		argv = slices.Concat([]string{roleName}, v.Args[1:])
	}
	p, err := Start(Spec{
		Path: path, Args: argv, Dir: folder, Policy: v.Policy,
		Env:     withPath([]string{"HOME=" + folder, "NODE_TLS_REJECT_UNAUTHORIZED=0"}),
		Refused: func(r Refusal) { mu.Lock(); result.Refusals = append(result.Refusals, r); mu.Unlock() },
	}, Stdio{Stdout: theirs, Stderr: theirs})
	if err != nil {
		return err
	}
	theirs.Close()
	text, err := io.ReadAll(bufio.NewReader(out))
	if err != nil {
		return err
	}
	<-p.Gone()
	mu.Lock()
	defer mu.Unlock()
	result.Out, result.Code = string(text), p.Exit().Code
	return json.NewEncoder(os.Stdout).Encode(result)
}

// fetching are programs that know no proxy, as they get an address.
func fetching(url string) map[string][]string {
	return map[string][]string{
		"node fetch": {"node", "-e", `fetch(process.argv[1]).then(r=>r.text()).then(console.log,
			e=>{console.log(e.cause?.code ?? e); process.exit(1)})`, url},
		"node http": {"node", "-e", `require(process.argv[1].split(':')[0]).get(process.argv[1],
			r=>r.pipe(process.stdout)).on('error', e=>{console.log(e.code); process.exit(1)})`, url},
		"curl": {"curl", "-ksS", "--max-time", "20", url},
		"python": {
			"/usr/bin/python3", "-c", `import ssl,sys,urllib.request as u
print(u.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read().decode())`, url,
		},
		"go": {"SELF", "fetch", url},
	}
}

// playFetch is a Go program that fetches.
func playFetch(args []string) error {
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	answer, err := http.Get(args[0])
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

// available drops programs that this machine hasn't.
func available(t *testing.T, programs map[string][]string) map[string][]string {
	t.Helper()
	for name, args := range programs {
		if args[0] == "SELF" {
			continue
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Logf("this machine has no %s", args[0])
			delete(programs, name)
		}
	}
	return programs
}

func TestProgramsReachTheInternet(t *testing.T) {
	atUsers(t, func(t *testing.T, user uint32) {
		for name, args := range available(t, fetching("http://api.example.com:HTTP/")) {
			for _, policy := range []Policy{
				{Network: NetworkInternet},
				{Network: NetworkListed, Hosts: []string{"api.example.com:" + httpPort}},
				{Network: NetworkListed, Hosts: []string{"*.example.com:" + httpPort}},
			} {
				got := visitNetwork(t, &visit{Policy: policy, Args: slices.Clone(args), User: user})
				if got.Code != 0 || !strings.Contains(got.Out, "hello from api.example.com") {
					t.Errorf("%s, network %s %q: %+v", name, policy.Network, policy.Hosts, got)
				}
				if len(got.Refusals) > 0 {
					t.Errorf("%s: refused: %v", name, got.Refusals)
				}
			}
		}
	})
}

// The server's name is compared with the list, where TLS is spoken.
func TestNamesOfTLS(t *testing.T) {
	policy := Policy{Network: NetworkListed, Hosts: []string{"api.example.com:" + tlsPort}}
	for name, args := range available(t, fetching("https://api.example.com:TLS/?size=3000000")) {
		got := visitNetwork(t, &visit{Policy: policy, Args: args})
		if n := strings.Count(got.Out, "\x00"); got.Code != 0 || n != 3000000 || len(got.Refusals) > 0 {
			t.Errorf("%s: %d bytes, exit status %d, %v", name, n, got.Code, got.Refusals)
		}
	}
	for url, want := range map[string]string{
		"https://evil.example.org:TLS/": "evil.example.org", // another name, at the same address
		"http://api.example.com:TLS/":   "api.example.com",  // no TLS
		"https://8.8.8.8:TLS/":          "api.example.com",  // TLS without a name
	} {
		got := visitNetwork(t, &visit{Policy: policy, Args: []string{
			"curl", "-ksS", "--max-time", "20", "--connect-to", "::api.example.com:TLS", url,
		}})
		told := len(got.Refusals) == 1 && got.Refusals[0].Host == want && got.Refusals[0].Port == 8443
		if got.Code == 0 || strings.Contains(got.Out, "hello") || !told {
			t.Errorf("%s: %+v", url, got)
		}
	}
}
