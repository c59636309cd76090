// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// An init is garra executed in new namespaces: process 1 in there, whose end is the
// end of all others. It makes the file system that they see, starts the stage, and
// collects what dies. It never learns what the server's secrets are.

const (
	initName = "garra-init" // argv[0] by which Main knows an init
	stageFD  = 4            // the stage's end of its socket to the launcher
)

// An initReport is what an init sends the launcher: ready or failed first, and exited
// when the server has.
type initReport struct {
	Ready  bool          `json:"ready,omitempty"`
	Failed *failedReport `json:"failed,omitempty"`
	Exited *exitedReport `json:"exited,omitempty"`
}

// runInit is the init. It returns when the server has ended, or the launcher has.
func runInit() error {
	runtime.LockOSThread()
	signal.Notify(make(chan os.Signal, 1)) // nobody receives: what the server sends to process 1 is dropped
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(stageFD)
	control := os.NewFile(controlFD, "control")
	requests, reports := json.NewDecoder(control), json.NewEncoder(control)
	var c confinement
	if err := requests.Decode(&c); err != nil {
		return errors.New("no request on descriptor 3; garra starts this program, people don't")
	}
	stage, failure := c.startInside()
	if failure != nil {
		return reports.Encode(initReport{Failed: failure})
	}
	if err := reports.Encode(initReport{Ready: true}); err != nil {
		return err
	}
	// Ends with this process. Nothing is sent any more: the end of the socket is the
	// launcher's, which should have ended this process too.
	go func() {
		_ = requests.Decode(&c)
		syscall.Exit(1)
	}()
	debug.FreeOSMemory()
	return reports.Encode(initReport{Exited: reapUntil(stage)})
}

// startInside makes the server's surroundings and starts the stage in them.
func (c *confinement) startInside() (stage int, failure *failedReport) {
	for _, step := range []struct {
		doing string
		do    func() error
	}{
		{"making a network of its own", c.enterNetwork},
		{"listening for questions for names", c.listenForNames},
		{"making a file system of its own", c.enterRoot},
		{"dropping the init's capabilities", dropCapabilities},
		{"forbidding the init new privileges", forbidPrivileges},
		// The server is of the same user, and would find descriptors to garra here.
		{"hiding the init's memory", func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }},
	} {
		if err := step.do(); err != nil {
			return 0, newFailedReport(OpConfine, step.doing, err)
		}
	}
	stage, err := syscall.ForkExec(selfExe, []string{stageName}, &syscall.ProcAttr{
		Env:   launcherEnv(),
		Files: []uintptr{0, 1, 2, stageFD},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, newFailedReport(OpConfine, "starting the stage", err)
	}
	syscall.Close(stageFD)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, newFailedReport(OpConfine, "opening the null device", err)
	}
	for fd := range controlFD { // the server's pipes, which end when it closes them
		_ = duplicate(int(null.Fd()), fd)
	}
	null.Close()
	return stage, nil
}

// enterNetwork brings up the loopback interface of a network namespace that has
// nothing else.
func (c *confinement) enterNetwork() error {
	if !c.ownNetwork() {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback)
}

// listenForNames hands the launcher sockets of the server's network, on which programs ask
// for names by DNS. The launcher answers them itself, so that this process, which is of the
// server's user and in its namespaces, reads nothing that the server wrote.
func (c *confinement) listenForNames() error {
	if !c.gated() {
		return nil
	}
	at := &unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 1}}
	var fds []int
	for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, at); err != nil {
			return err
		}
		fds = append(fds, fd)
	}
	if err := unix.Listen(fds[1], maxCalls); err != nil {
		return err
	}
	return sendFiles(stageFD, partNames, fds...)
}

// reapUntil collects what dies until the server does.
func reapUntil(server int) *exitedReport {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, 0, &usage)
		if err == nil && pid == server {
			return newExitedReport(status, &usage)
		}
		if err != nil && err != syscall.EINTR {
			return &exitedReport{Code: -1} // unreachable: there is the server to wait for
		}
	}
}
