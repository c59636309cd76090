// SPDX-License-Identifier: Apache-2.0

//go:build linux

package systemd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// manager listens as a service manager does, and says what it hears.
func manager(t *testing.T, address string) (heard func() string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func() string {
		t.Helper()
		conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		text := make([]byte, 4096)
		n, err := conn.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
}

func TestNotify(t *testing.T) {
	for _, address := range []string{
		filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@garra-test-%d", os.Getpid()),
	} {
		heard := manager(t, address)
		t.Setenv(notifySocket, address)
		m := Take(os.Getpid())
		for _, step := range []struct {
			err  error
			want string
		}{
			{m.Ready("serving\neverything"), `^READY=1\nSTATUS=serving everything$`},
			{m.Reloading(), `^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]+$`},
			{m.Stopping(3 * time.Second), `^STOPPING=1\nEXTEND_TIMEOUT_USEC=3000000\nSTATUS=stopping$`},
			{m.Alive(), `^WATCHDOG=1$`},
			{m.MainProcess(42), `^MAINPID=42$`},
		} {
			if step.err != nil {
				t.Fatalf("%s: %v", step.want, step.err)
			}
			if got := heard(); !regexp.MustCompile(step.want).MatchString(got) {
				t.Errorf("told %q, want %s", got, step.want)
			}
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Setenv(notifySocket, "")
	if err := Take(1).Ready("x"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	t.Setenv(notifySocket, filepath.Join(t.TempDir(), "nobody"))
	if err := Take(1).Ready("x"); err == nil {
		t.Error("a manager that is not there heard it")
	}
}

func TestTake(t *testing.T) {
	for _, c := range []struct {
		set      string
		watchdog time.Duration
	}{
		{"", 0},
		{"WATCHDOG_USEC=3000000", 3 * time.Second},
		{"WATCHDOG_USEC=3000000 WATCHDOG_PID=7", 3 * time.Second},
		{"WATCHDOG_USEC=3000000 WATCHDOG_PID=8", 0},
		{"WATCHDOG_USEC=-3", 0},
		{"WATCHDOG_USEC=soon", 0},
		{"LISTEN_FDS=1", 0},
		{"LISTEN_FDS=1 LISTEN_PID=8", 0},
		{"LISTEN_FDS=0 LISTEN_PID=7", 0},
		{"LISTEN_FDS=-1 LISTEN_PID=7", 0},
		{"LISTEN_FDS=100000 LISTEN_PID=7", 0},
		{"LISTEN_FDS=x LISTEN_PID=7 LISTEN_FDNAMES=a LISTEN_PIDFDID=3", 0},
	} {
		for assignment := range strings.FieldsSeq(c.set) {
			name, value, _ := strings.Cut(assignment, "=")
			t.Setenv(name, value)
		}
		m := Take(7)
		if m.Watchdog != c.watchdog || len(m.Sockets) > 0 {
			t.Errorf("%q: %v and %d sockets", c.set, m.Watchdog, len(m.Sockets))
		}
		for _, variable := range os.Environ() {
			if strings.HasPrefix(variable, "LISTEN_") || strings.HasPrefix(variable, "WATCHDOG_") {
				t.Errorf("%q: %s is left", c.set, variable)
			}
		}
	}
}

func TestEnviron(t *testing.T) {
	m := &Manager{address: "/run/notify", Watchdog: time.Second}
	if got := strings.Join(m.Environ(), " "); got != "NOTIFY_SOCKET=/run/notify WATCHDOG_USEC=1000000" {
		t.Errorf("got %s", got)
	}
	if got := new(Manager).Environ(); len(got) > 0 {
		t.Errorf("without a manager: %s", got)
	}
}
