// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An attempt is one way out, tried by a program inside.
type attempt struct {
	name  string
	claim string // the claim that it would break
	// try returns nil when it got out, and errNotHere when it can't be tried by this user
	// or on this machine.
	try func(w *world) error
}

// A world is what there is to get at, as the program inside is told. It is the test's, and
// nothing in it is the user's.
type world struct {
	Inside   string // a folder that it may write
	Outside  string // one that it may not even see, with files in it
	Secret   string // a file in there
	Sibling  int    // another server's process
	Host     int    // the process of the test, as a gateway's
	TCP      string // what listens on the host's loopback interface
	TCP6     string
	UDP      string
	Unix     string // a socket outside
	UnixLink string // a link to that in the folder inside
	Name     string // an abstract socket's
	Shared   int    // System V shared memory
	Queue    int    // a System V message queue
	Setuid   string // a program inside that is root's, setuid
	Leaked   string // a file that the host has open, not close-on-exec
}

// escapeResult is what the program inside prints of each attempt.
type escapeResult struct {
	Name   string `json:"name"`
	Error  string `json:"error,omitempty"`
	Absent bool   `json:"absent,omitempty"`
}

// worldVariable has the world.
const worldVariable = "SANDBOX_TEST_WORLD"

// playEscapes tries everything and prints what came of it.
func playEscapes([]string) error {
	var w world
	if err := json.Unmarshal([]byte(os.Getenv(worldVariable)), &w); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range attempts() {
		err := make(chan error)
		go func() { err <- tryAlone(a, &w) }() // ends with the attempt, which is waited for
		r := escapeResult{Name: a.name}
		if e := <-err; e != nil {
			r.Error, r.Absent = e.Error(), e == errNotHere
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// newWorld makes a world. What it makes is readable for every user: nothing but the sandbox
// keeps the program from it.
func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "garra-escape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	w := &world{Inside: base + "/inside", Outside: base + "/outside", Host: os.Getpid()}
	for _, folder := range []string{base, w.Inside, w.Outside} {
		os.Mkdir(folder, 0o777)
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w.Secret = w.Outside + "/id_ed25519"
	for _, name := range []string{"id_ed25519", "vault.age", "tokens.json", ".bashrc"} {
		writeOpen(t, filepath.Join(w.Outside, name), "secret", 0o666)
	}
	writeOpen(t, w.Outside+"/program", "#!/bin/sh\nexit 0\n", 0o777)
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	w.Setuid = w.Inside + "/setuid"
	writeOpen(t, w.Setuid, string(self), 0o755|os.ModeSetuid)
	w.Leaked = w.Secret
	w.open(t)
	return w
}

// writeOpen writes a file with a mode that the umask doesn't narrow.
func writeOpen(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// open opens the sockets and other objects of the world.
func (w *world) open(t *testing.T) {
	t.Helper()
	listen := func(network, address string) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	w.TCP = listen("tcp4", "127.0.0.1:0")
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		t.Cleanup(func() { l.Close() })
		w.TCP6 = l.Addr().String()
	}
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	go echoPackets(udp) // ends with the socket
	w.UDP = udp.LocalAddr().String()
	w.Unix, w.UnixLink = listen("unix", w.Outside+"/docker.sock"), w.Inside+"/link.sock"
	if err := errors.Join(os.Chmod(w.Unix, 0o777), os.Symlink(w.Unix, w.UnixLink)); err != nil {
		t.Fatal(err)
	}
	w.Name = fmt.Sprintf("@garra-escape-%d-%d", os.Getpid(), time.Now().UnixNano())
	listen("unix", w.Name)
	if w.Shared, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.SysvShmCtl(w.Shared, unix.IPC_RMID, nil) })
	queue, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o666, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	w.Queue = int(queue)
	t.Cleanup(func() { unix.Syscall(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0) })
}

// echoPackets answers packets.
func echoPackets(conn net.PacketConn) {
	for buffer := make([]byte, 16); ; {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		conn.WriteTo(buffer[:n], from)
	}
}

// sibling starts another process of the user that the program inside is of, with a secret
// in its environment.
func (w *world) sibling(t *testing.T, uid uint32) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	cmd.Env, cmd.Dir = []string{"TOKEN=secret"}, "/"
	asUser(cmd, uid)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	w.Sibling = cmd.Process.Pid
}

// escape tries everything in a server that is confined so, as a user, and returns how each
// attempt ended.
func escape(t *testing.T, policy *Policy, uid uint32) map[string]escapeResult {
	t.Helper()
	w := newWorld(t)
	w.sibling(t, uid)
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	inside, err := json.Marshal(Policy{
		Level: policy.Level, Network: policy.Network, Read: []string{w.Setuid}, Write: []string{w.Inside},
	})
	if err != nil {
		t.Fatal(err)
	}
	host := role(t, "host-escapes", string(inside), w.Setuid, w.Inside)
	host.Path, host.Dir = "/proc/self/exe", "/" // the file itself is where other users can't go
	host.Env = append(os.Environ(), worldVariable+"="+string(text))
	leaked, err := os.Open(w.Leaked)
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	host.ExtraFiles = []*os.File{leaked}
	var out bytes.Buffer
	host.Stdout = &out
	asUser(host, uid)
	if err := host.Run(); err != nil {
		t.Fatalf("%v, after %s", err, out.String())
	}
	results := map[string]escapeResult{}
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var r escapeResult
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results[r.Name] = r
	}
	if len(results) != len(attempts()) {
		t.Fatalf("%d of %d attempts were made", len(results), len(attempts()))
	}
	return results
}

// hostEscapes hosts the program that tries to get out.
func hostEscapes(args []string) error {
	var policy Policy
	if err := json.Unmarshal([]byte(args[0]), &policy); err != nil {
		return err
	}
	p, err := Start(Spec{
		Path: args[1], Args: []string{roleName, "escapes"}, Dir: args[2], Policy: policy,
		Env: withPath([]string{worldVariable + "=" + os.Getenv(worldVariable)}),
	}, Stdio{Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	<-p.Gone()
	if exit := p.Exit(); exit.Code != 0 {
		return fmt.Errorf("the program inside: %v", exit)
	}
	return nil
}

// ordinaryUser is one with no other process.
const ordinaryUser = 54322

// TestClaims walks the list of claims and tries each at each level, as root and as an
// ordinary user: what is claimed must be refused. That an attempt does what it says shows
// where nothing confines it.
func TestClaims(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be two users")
	}
	free := escape(t, &Policy{}, 0)
	for _, a := range attempts() {
		// Descriptors stay with the launcher, policy or not.
		if r := free[a.name]; r.Error != "" && !r.Absent && a.name != "open the host's descriptors" {
			t.Errorf("%s fails where nothing confines it: %s", a.name, r.Error)
		}
	}
	atLevels(t, func(t *testing.T, level Level) {
		for user, uid := range map[string]uint32{"root": 0, "user": ordinaryUser} {
			t.Run(user, func(t *testing.T) {
				policy := &Policy{Level: level, Network: NetworkNone}
				of := policy.confinement()
				results := escape(t, policy, uid)
				for _, a := range attempts() {
					claim := claimNamed(t, a.claim)
					if r := results[a.name]; r.Error == "" && claim.Holds(&of) {
						t.Errorf("%s: a server can %s", a.name, claim.Text)
					}
				}
			})
		}
	})
}

func claimNamed(t *testing.T, name string) *Claim {
	t.Helper()
	list := Claims()
	i := slices.IndexFunc(list, func(c Claim) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no claim %q", name)
	}
	return &list[i]
}

// TestEachClaimIsTried: none is made that nothing tries, but for those that don't hold yet.
func TestEachClaimIsTried(t *testing.T) {
	elsewhere := map[string]string{
		"processes.escape": "TestConfinedTreeEndsWithItsLeader",
		"network.internet": "TestServersReachNothingElse",
		"network.listed":   "TestServersReachNothingElse",
	}
	strongest := Confinement{Level: LevelNamespaces, Landlock: 100}
	for _, claim := range Claims() {
		tried := slices.ContainsFunc(attempts(), func(a attempt) bool { return a.claim == claim.Name })
		if _, ok := elsewhere[claim.Name]; ok == tried && claim.Holds(&strongest) {
			t.Errorf("%s is tried by an attempt: %v, and elsewhere: %v", claim.Name, tried, ok)
		}
	}
	if got := len(attempts()); got < 60 {
		t.Errorf("only %d attempts", got)
	}
}

// What a level doesn't claim can be done at it, so that nobody is told of a hole that
// isn't one.
func TestGapsAreReal(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be two users")
	}
	atLevels(t, func(t *testing.T, level Level) {
		policy := &Policy{Level: level, Network: NetworkNone}
		of := policy.confinement()
		root, user := escape(t, policy, 0), escape(t, policy, ordinaryUser)
		for _, gap := range policy.Gaps(&of) {
			open := slices.ContainsFunc(attempts(), func(a attempt) bool {
				return a.claim == gap.Name && (root[a.name].Error == "" || user[a.name].Error == "")
			})
			if !open && gap.Name != "processes.escape" {
				t.Errorf("no attempt shows that %s", gap.Gap())
			}
		}
	})
}

// A policy without a list of the network leaves it open, which the claims say.
func TestNetworkThatIsOpen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, mode := range []NetworkMode{NetworkAll, NetworkInternet} {
		policy := &Policy{Level: LevelBasic, Network: mode}
		of := policy.confinement()
		results := escape(t, policy, 0)
		if r := results["connect to the host's loopback"]; r.Error != "" {
			t.Errorf("network %s: %s", mode, r.Error)
		}
		said := slices.ContainsFunc(policy.Gaps(&of), func(c Claim) bool {
			return strings.HasPrefix(c.Name, "network.")
		})
		if said != (mode == NetworkInternet) {
			t.Errorf("network %s: the open network is said to be a gap: %v", mode, said)
		}
	}
}

// A user who isn't root is confined like root. Its program must be readable for it.
func TestOrdinaryUserHasEachLevel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become a user with no other process")
	}
	atLevels(t, func(t *testing.T, level Level) {
		host := role(t, "run", "/bin/cat", "/proc/self/status")
		host.Path, host.Dir = "/proc/self/exe", "/"
		host.Env = append(os.Environ(), levelVariable+"="+string(level))
		asUser(host, ordinaryUser)
		out, err := host.Output()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]uint64{
			"CapPrm": 0, "CapEff": 0, "CapAmb": 0, "NoNewPrivs": 1, "Seccomp": 2,
		} {
			if got := statusField(t, out, name); got != want {
				t.Errorf("%s: %x, want %x", name, got, want)
			}
		}
		if !bytes.Contains(out, fmt.Appendf(nil, "Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d", ordinaryUser)) {
			t.Errorf("it is another user: %s", out)
		}
	})
}

// errNoEscape is what an attempt returns that wasn't refused and got nothing either.
var errNoEscape = syscall.ENODATA
