// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

const (
	launcherName = "garra-launcher" // argv[0] by which Main knows what it is
	controlFD    = 3                // the launcher's end of the socket

	firstRound = time.Millisecond // how soon a tree that was killed is killed again,
	lastRound  = time.Second      // and how seldom, in the end
)

// Main turns a process that was started as a launcher, or as a stage, into one and doesn't
// return then; in any other process it returns at once. It must be the first
// thing that main, and the TestMain of a package that starts servers, calls.
func Main() {
	if len(os.Args) == 0 {
		return
	}
	role := launch
	switch os.Args[0] {
	case launcherName:
	case stageName:
		role = runStage
	case initName:
		role = runInit
	default:
		return
	}
	// Not os.Exit: there is nothing to flush, and what it runs in a binary with
	// the race detector sleeps for a second.
	if err := role(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

// A launcher is the state of a launcher's process. One goroutine, that of Main,
// owns it.
type launcher struct {
	requests *json.Decoder // from the host; the reading goroutine's, once there is one
	reports  *json.Encoder // to the host
	null     *os.File
	children chan os.Signal // SIGCHLD

	files  Files // of the server; without their contents once it has started
	server int   // the server's process id, and its process group's
	exited bool  // the server is reaped; its id may be another process's by now

	confine *confinement       // of the server; nil when it isn't
	gate    *gate              // its only way to a network; nil when it has another, or none
	refused *refusals          // that the gate made
	init    int                // process 1 of the server's namespaces; 0 without those
	news    chan *exitedReport // from the init; closed when that ends, nil without one

	group    *group      // of the server; nil without limits that need one
	enforced Enforcement // of its limits
	sampler  *sampler    // of its memory; nil without a limit of that
	over     bool        // it is being ended since it used more than that
}

// launch runs the launcher. It returns nil once the tree is gone, also when
// there never was one because the start failed and the host knows.
func launch() error {
	// The parent-death signal is sent when the thread that forked ends. This
	// one stays as long as the process.
	runtime.LockOSThread()
	control := os.NewFile(controlFD, "control")
	l := &launcher{
		requests: json.NewDecoder(control),
		reports:  json.NewEncoder(control),
		children: takeSignals(),
		refused:  newRefusals(),
	}
	var first request
	if err := l.requests.Decode(&first); err != nil || first.Start == nil {
		return errors.New("no specification on descriptor 3; garra starts this program, people don't")
	}
	l.confine = first.Start.Confine
	if failure := l.start(first.Start.spec()); failure != nil {
		return l.reports.Encode(report{Failed: failure})
	}
	l.tell(report{Started: &startedReport{
		PID: l.server, Root: l.root(), Memory: l.enforced.Memory, Unenforced: l.enforced.Unenforced,
	}})
	first = request{}
	debug.FreeOSMemory() // the specification, much of what this process ever allocates
	l.guard()
	l.group.remove()
	l.files.remove()
	return nil
}

// takeSignals installs handlers for every signal and returns the channel of
// SIGCHLD. The others end there: a terminal, a service manager or a person that
// signals whole groups means the host, which decides what becomes of the
// server. And a signal that is handled is set to its default action by exec,
// whereas one that the host's parent ignored would be ignored by the server.
func takeSignals() chan os.Signal {
	signal.Notify(make(chan os.Signal, 1)) // nobody receives: dropped
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	return children
}

// start starts the server.
func (l *launcher) start(spec *Spec) *failedReport {
	if failure := l.prepare(); failure != nil {
		return failure
	}
	if spec.Dir != "" {
		if err := syscall.Chdir(spec.Dir); err != nil {
			return newFailedReport(OpChdir, "", err)
		}
	}
	if err := spec.Files.write(); err != nil {
		return newFailedReport(OpLaunch, "writing the server's files", err)
	}
	pid, failure := l.execute(spec)
	if failure != nil {
		spec.Files.remove() // before the host knows, which kills this process then
		return failure
	}
	spec.Files.forget()
	l.server, l.files = pid, spec.Files
	l.sampler = newSampler(&spec.Limits, l.group, l.root())
	l.letGo()
	return nil
}

// execute starts the server's program and returns its process id.
func (l *launcher) execute(spec *Spec) (pid int, failure *failedReport) {
	if spec.Limits.any() || l.confine != nil {
		return l.startStaged(spec)
	}
	pid, err := syscall.ForkExec(spec.Path, spec.Args, &syscall.ProcAttr{
		Env:   spec.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   serverAttr(),
	})
	if err != nil {
		return 0, newFailedReport(execOp(spec.Path, err), "", err)
	}
	return pid, nil
}

// root is the process whose descendants are the server's tree.
func (l *launcher) root() int {
	if l.init != 0 {
		return l.init
	}
	return os.Getpid()
}

// prepare makes this process fit to be a server's parent.
func (l *launcher) prepare() *failedReport {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return newFailedReport(OpLaunch, "opening the null device", err)
	}
	l.null = null
	for _, step := range []struct {
		doing string
		do    func() error
	}{
		{"naming the process", nameProcess},
		{"becoming the reaper of the tree", becomeSubreaper},
		{"clearing the signal mask", clearSignalMask},
		{"forbidding core files", forbidCore},
		{"marking descriptors close-on-exec", closeOnExec},
	} {
		if err := step.do(); err != nil {
			return newFailedReport(OpLaunch, step.doing, err)
		}
	}
	return nil
}

// forbidCore also holds for the server, which can't take it back.
func forbidCore() error {
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

// execOp tells a missing file from a missing interpreter: execve(2) says ENOENT
// for both.
func execOp(path string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path); err == nil {
			return OpInterpreter
		}
	}
	return OpExec
}

// letGo gives up what belongs to the server alone: its pipes, whose other ends
// must see it close them, and its working directory. The server runs already
// and there is nothing to do about an error; no cause of one is known.
func (l *launcher) letGo() {
	for fd := range controlFD {
		duplicate(int(l.null.Fd()), fd)
	}
	l.null.Close()
	syscall.Chdir("/")
}

// newFailedReport reports err, which the system gave.
func newFailedReport(op, doing string, err error) *failedReport {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		errno = syscall.EINVAL // what package syscall itself refuses
	}
	return &failedReport{Op: op, Errno: errno, Doing: doing}
}

// guard serves the host until the tree is gone.
func (l *launcher) guard() {
	signals := make(chan syscall.Signal)
	// Ends when the host's direction of the socket does. Nobody waits for it:
	// it is alone in holding nothing but the socket.
	go l.read(signals)
	for !l.exited {
		select {
		case <-l.children:
			l.reap()
		case sig, open := <-signals:
			if !open {
				l.killTree()
				return
			}
			signalTree(l.root(), l.server, sig)
		case exit, open := <-l.news:
			if open {
				l.ended(exit)
			} else {
				l.news = nil // the init has ended, and will be reaped
			}
		case refusal := <-l.refused.queue:
			l.tell(report{Refused: &refusal})
		case <-l.sampler.due():
			if l.over = l.sampler.over(); l.over {
				l.tell(report{Over: true})
				l.killTree()
				return
			}
		}
	}
	l.killTree()
}

// read passes on the signals that the host asks for and closes the channel when
// the host asks for the end, is gone, or talks nonsense.
func (l *launcher) read(signals chan<- syscall.Signal) {
	defer close(signals)
	for {
		var r request
		if err := l.requests.Decode(&r); err != nil {
			return
		}
		if r.Signal != 0 {
			signals <- r.Signal
		}
	}
}

// killTree kills the tree until nothing is left. New processes of it can appear
// while it looks; a process that has been killed makes no more of them, so each
// round leaves fewer that could.
func (l *launcher) killTree() {
	delay := firstRound
	for {
		if l.init != 0 { // the kernel has all others end with it
			syscall.Kill(l.init, syscall.SIGKILL)
		} else {
			signalTree(l.root(), l.server, syscall.SIGKILL)
		}
		if l.reap() && !groupLives(l.server) {
			return
		}
		select {
		case <-l.children:
		case <-time.After(delay):
			delay = min(2*delay, lastRound)
		}
	}
}

// reap collects every child that has died, the server and adopted ones, and
// reports whether no child is left at all.
func (l *launcher) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		switch {
		case err == syscall.EINTR:
		case err != nil: // ECHILD
			return true
		case pid == 0:
			return false
		default:
			l.reaped(pid, status, &usage)
		}
	}
}

// reaped takes the end of one process.
func (l *launcher) reaped(pid int, status syscall.WaitStatus, usage *syscall.Rusage) {
	l.sampler.note(maxRSSBytes(usage))
	switch {
	case l.exited:
	case pid == l.server:
		l.ended(newExitedReport(status, usage))
	case pid == l.init:
		// What the init told is the truth, if it did. Else it was killed, and the server
		// with it.
		exit := newExitedReport(status, usage)
		if l.news != nil {
			if told, open := <-l.news; open {
				exit = told
			}
		}
		l.ended(exit)
	}
}

// ended tells that the server has.
func (l *launcher) ended(exit *exitedReport) {
	l.exited = true
	l.sampler.note(exit.MaxRSS)
	exit.Over = l.over || l.sampler.killed()
	for refusal, more := l.refused.next(); more; refusal, more = l.refused.next() {
		l.tell(report{Refused: &refusal})
	}
	exit.Peak, exit.Near = l.sampler.seen(), l.sampler.wasNear()
	l.tell(report{Exited: exit})
}

// tell sends a report. When the host is gone there is nobody to tell, and the
// reading goroutine has noticed that too.
func (l *launcher) tell(r report) {
	_ = l.reports.Encode(r)
}
