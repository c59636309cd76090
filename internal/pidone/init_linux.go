// SPDX-License-Identifier: Apache-2.0

package pidone

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/garraia/garra/internal/nodump"
	"github.com/garraia/garra/internal/ownenv"
)

const (
	firstFD  = 3 // of sockets that process 1 was started with (sd_listen_fds(3))
	maxFDs   = 1024
	bySignal = 128 // plus the signal, the exit code of a program that one has ended
	cantRun  = 126
)

// Main does not return in process 1. In any other it returns at once. The variables hold
// secrets: the child gets them, and this process forgets them. It must be called before
// anything else is started.
func Main(variables ...string) {
	if os.Getpid() == 1 {
		os.Exit(serve(variables))
	}
}

// serve starts the child and returns its exit code.
func serve(variables []string) int {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals) // before there is a child, so that it misses none
	child, err := start()
	for _, name := range variables {
		clear(taken(ownenv.Take(name)))
	}
	_ = nodump.Set()
	if err != nil {
		fmt.Fprintf(os.Stderr, "garra: starting it again as the child of process 1: %v\n", err)
		return cantRun
	}
	go pass(signals, child) // ends with the process
	return collect(child)
}

func taken(value []byte, _ bool) []byte { return value }

// start executes this program again.
func start() (pid int, err error) {
	path, err := os.Executable()
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{
		Env: append(os.Environ(), childVariable+"=1"), Files: []uintptr{0, 1, 2},
		// A group of its own: what a terminal sends to this one's is passed on, and would
		// come twice.
		Sys: &syscall.SysProcAttr{Setpgid: true},
	}
	handed := handedOver()
	for i := range handed {
		attr.Files = append(attr.Files, uintptr(firstFD+i))
	}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil { // it may have to ask for a passphrase
		attr.Sys = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	}
	pid, err = syscall.ForkExec(path, os.Args, attr)
	if errors.Is(err, syscall.ENOTTY) { // the terminal is another session's
		attr.Sys = nil
		pid, err = syscall.ForkExec(path, os.Args, attr)
	}
	for i := range handed {
		syscall.Close(firstFD + i) // they are the child's alone to close
	}
	return pid, err
}

// handedOver is how many sockets a service manager has handed over to this process.
func handedOver() int {
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || os.Getenv("LISTEN_PID") != "1" || n < 0 || n > maxFDs {
		return 0
	}
	return n
}

// pass passes on what comes from outside. The rest is about this process itself: its
// children, what the Go runtime sends to itself, and its own streams.
func pass(signals <-chan os.Signal, child int) {
	for sig := range signals {
		switch number, ok := sig.(syscall.Signal); {
		case !ok, number == syscall.SIGCHLD, number == syscall.SIGURG, number == syscall.SIGPIPE:
		default:
			syscall.Kill(child, number) // it may have ended
		}
	}
}

// collect collects everything that ends, until the child does.
func collect(child int) (code int) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return cantRun // there is no child any more, which can't be
		case pid != child:
		case status.Signaled():
			return bySignal + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}
