// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	startTimeout  = 30 * time.Second // a launcher that needs longer is not going to come
	signalTimeout = 5 * time.Second  // a launcher that is stopped doesn't read
)

// launcherEnv is the launcher's whole environment: settings of the Go runtime
// that keep a process small which sleeps all its life. The host's environment
// would hold secrets of other servers.
func launcherEnv() []string { return []string{"GOMAXPROCS=1", "GOGC=20"} }

// A handle is what the host holds of a launcher.
type handle struct {
	launcher *os.Process
	control  *net.UnixConn
	reports  *json.Decoder // from control
	files    Files         // that the launcher removes, unless it is killed
	root     int           // whose descendants are the tree: the launcher, or an init
}

// start executes a launcher, has it start the server, and watches both.
func (p *Process) start(spec *Spec, stdio Stdio) *StartError {
	control, theirs, err := controlPair()
	if err != nil {
		return &StartError{Op: OpLaunch, Err: err}
	}
	p.launcher, err = os.StartProcess(launcherPath(), []string{launcherName}, &os.ProcAttr{
		Env:   launcherEnv(),
		Files: []*os.File{stdio.Stdin, stdio.Stdout, stdio.Stderr, theirs},
		Sys:   &syscall.SysProcAttr{Setsid: true}, // out of reach of a terminal's ^C
	})
	theirs.Close()
	if err != nil {
		control.Close()
		return &StartError{Op: OpLaunch, Err: bare(err)}
	}
	p.control, p.reports = control, json.NewDecoder(control)
	if err := p.handshake(spec); err != nil {
		p.abandon()
		return err
	}
	go p.watch() // ends when the launcher has; closes p.gone for whoever waits
	return nil
}

// controlPair returns the two ends of a connected pair of sockets.
func controlPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock() // no fork between making and marking them
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("making the control socket: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "control")
	defer file.Close()
	theirs = os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(file) // a duplicate, known to the poller
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("making the control socket: %w", bare(err))
	}
	return conn.(*net.UnixConn), theirs, nil
}

// handshake sends the specification and waits for what comes of it.
func (p *Process) handshake(spec *Spec) *StartError {
	p.control.SetDeadline(time.Now().Add(startTimeout))
	defer p.control.SetDeadline(time.Time{})
	if err := p.send(request{Start: newStartRequest(spec)}); err != nil {
		return &StartError{Op: OpLaunch, Err: silent(err)}
	}
	var answer report
	if err := p.reports.Decode(&answer); err != nil {
		return &StartError{Op: OpLaunch, Err: silent(err)}
	}
	switch {
	case answer.Failed != nil:
		return answer.Failed.startError(spec)
	case answer.Started != nil:
		p.pid, p.root, p.files = answer.Started.PID, answer.Started.Root, spec.Files
		p.enforced = Enforcement{Memory: answer.Started.Memory, Unenforced: answer.Started.Unenforced}
		return nil
	}
	return &StartError{Op: OpLaunch, Err: errors.New("the launcher's first report says nothing of a start")}
}

// silent explains an exchange that ended without an answer.
func silent(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer from the launcher in %v: %w", startTimeout, err)
	}
	return fmt.Errorf("the launcher ended without an answer "+
		"(its stderr has the cause; too few processes or too little memory for it, often): %w", err)
}

func (f *failedReport) startError(spec *Spec) *StartError {
	switch f.Op {
	case OpLaunch, OpLimit, OpConfine:
		return &StartError{Op: f.Op, Err: fmt.Errorf("%s: %w", f.Doing, f.Errno)}
	case OpChdir:
		return &StartError{Op: f.Op, Path: spec.Dir, Err: f.Errno}
	}
	return &StartError{Op: f.Op, Path: spec.Path, Err: f.Errno}
}

// abandon ends a launcher whose start failed. It has no server, or one that
// dies with it.
func (p *Process) abandon() {
	p.control.Close()
	p.launcher.Kill()
	p.launcher.Wait()
}

// watch follows the launcher to its end.
func (p *Process) watch() {
	defer close(p.gone)
	defer p.control.Close()
	reported := false
	for {
		var r report
		if err := p.reports.Decode(&r); err != nil {
			break // the launcher has ended
		}
		if r.Over || r.Exited != nil && r.Exited.Over {
			p.over.Store(true)
		}
		if r.Refused != nil && p.refused != nil {
			p.refused(*r.Refused)
		}
		if r.Exited != nil && !reported {
			reported = true
			p.finish(r.Exited.exit())
		}
	}
	state, err := p.launcher.Wait()
	if !reported {
		p.finish(Exit{Code: -1, Lost: true})
	}
	if err != nil || !state.Success() {
		sweepStrays()
		sweepGroups()
		p.files.remove()
	}
}

// signal has the launcher send sig.
func (p *Process) signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok || number <= 0 {
		return fmt.Errorf("sending signal: %v is no signal of this system", sig)
	}
	p.control.SetWriteDeadline(time.Now().Add(signalTimeout))
	err := p.send(request{Signal: number})
	switch {
	case err == nil:
		return nil
	case closed(p.exited):
		return os.ErrProcessDone
	}
	return fmt.Errorf("sending signal %d: %w", number, bare(err))
}

// kill ends the host's direction of the socket, as the host's death would. A
// launcher that a signal has stopped is woken up for it.
func (p *Process) kill() error {
	err := p.control.CloseWrite()
	if err != nil && !errors.Is(err, syscall.ENOTCONN) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("killing the tree of process %d: %w", p.pid, bare(err))
	}
	if err := p.launcher.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("waking up the launcher of process %d: %w", p.pid, bare(err))
	}
	return nil
}

// send writes one message in one write, so that messages of several goroutines
// don't mix.
func (p *Process) send(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = p.control.Write(append(line, '\n'))
	return err
}
