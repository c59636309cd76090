// SPDX-License-Identifier: Apache-2.0

// Package systemd speaks with the service manager that started this process: it takes
// the sockets that were opened for it (sd_listen_fds(3)), and tells how it is
// (sd_notify(3), sd_watchdog_enabled(3)). Both protocols are variables in the environment
// and a datagram, and are spoken by other managers and by container engines, too.
package systemd

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// The variables of the protocols.
const (
	notifySocket  = "NOTIFY_SOCKET"
	watchdogUsec  = "WATCHDOG_USEC"
	watchdogPID   = "WATCHDOG_PID"
	listenPID     = "LISTEN_PID"
	listenPIDFDID = "LISTEN_PIDFDID"
	listenFDs     = "LISTEN_FDS"
	listenNames   = "LISTEN_FDNAMES"
)

const (
	firstFD     = 3               // of those that are handed over
	maxSockets  = 1024            // more than anybody opens for one service
	sendTimeout = 2 * time.Second // for a manager that doesn't read
)

// A Manager is the service manager that started this process. The zero one is none, and
// takes everything in silence.
type Manager struct {
	// Sockets are those that it has opened for this process. Whoever uses them closes
	// them.
	Sockets []*os.File
	// Watchdog is within what time it wants to hear of this process; 0 is never.
	Watchdog time.Duration

	address string // where it listens
}

// Take reads what the manager has put into the environment, and takes that out, so that
// no child takes it for its own. pid is what it knows this process by: what is meant for
// another one is left alone. Call it before any child is started.
func Take(pid int) *Manager {
	environment := make(map[string]string)
	for _, name := range []string{
		notifySocket, watchdogUsec, watchdogPID, listenPID, listenPIDFDID, listenFDs, listenNames,
	} {
		environment[name] = os.Getenv(name)
		os.Unsetenv(name)
	}
	m := &Manager{address: environment[notifySocket]}
	if concerns(environment[watchdogPID], pid, true) {
		usec, _ := strconv.ParseInt(environment[watchdogUsec], 10, 64) // none is never
		m.Watchdog = time.Duration(max(usec, 0)) * time.Microsecond
	}
	if concerns(environment[listenPID], pid, false) {
		m.Sockets = sockets(environment[listenFDs], environment[listenNames])
	}
	return m
}

// concerns reports whether the process id of a variable is pid; what it means when it is
// not set, the protocols say.
func concerns(text string, pid int, unset bool) bool {
	return text == strconv.Itoa(pid) || text == "" && unset
}

// sockets returns the descriptors that were handed over, in their order. Names are for
// people: they are in messages about a socket.
func sockets(count, names string) (files []*os.File) {
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > maxSockets {
		return nil
	}
	list := strings.Split(names, ":")
	for i := range n {
		name := ""
		if i < len(list) {
			name = list[i]
		}
		fd := firstFD + i
		closeOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), cmp.Or(name, fmt.Sprintf("socket %d", i+1))))
	}
	return files
}

// Listens reports whether there is a manager that wants to hear anything.
func (m *Manager) Listens() bool { return m.address != "" }

// Environ is what a process that takes the place of this one needs in its environment to
// speak with the manager. Sockets are not among it.
func (m *Manager) Environ() []string {
	if !m.Listens() {
		return nil
	}
	env := []string{notifySocket + "=" + m.address}
	if m.Watchdog > 0 {
		env = append(env, fmt.Sprintf("%s=%d", watchdogUsec, m.Watchdog.Microseconds()))
	}
	return env
}

// Notify tells the manager assignments such as READY=1, all of them at once. It does not
// wait for one that doesn't read.
func (m *Manager) Notify(assignments ...string) error {
	if !m.Listens() {
		return nil
	}
	// An address that begins with @ is an abstract one, for package net as for the
	// protocol.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.address, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("telling the service manager: %w", err)
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	if _, err := conn.Write([]byte(strings.Join(assignments, "\n"))); err != nil {
		return fmt.Errorf("telling the service manager: %w", err)
	}
	return nil
}

// Ready is that the process serves.
func (m *Manager) Ready(status string) error { return m.Notify("READY=1", statusLine(status)) }

// Status is how it is, in words for people.
func (m *Manager) Status(status string) error { return m.Notify(statusLine(status)) }

// Reloading is that it applies its configuration, until Ready.
func (m *Manager) Reloading() error {
	assignments := []string{"RELOADING=1"}
	if now := monotonic(); now > 0 { // by which Type=notify-reload tells this reload from one before
		assignments = append(assignments, fmt.Sprintf("MONOTONIC_USEC=%d", now.Microseconds()))
	}
	return m.Notify(assignments...)
}

// Stopping is that it ends, within a time.
func (m *Manager) Stopping(within time.Duration) error {
	return m.Notify("STOPPING=1", fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", within.Microseconds()), statusLine("stopping"))
}

// Alive is that it lives, which is to be said more often than Watchdog.
func (m *Manager) Alive() error { return m.Notify("WATCHDOG=1") }

// MainProcess is that another process has taken the place of this one.
func (m *Manager) MainProcess(pid int) error { return m.Notify(fmt.Sprintf("MAINPID=%d", pid)) }

// statusLine makes a status one line.
func statusLine(status string) string { return "STATUS=" + strings.ReplaceAll(status, "\n", " ") }
