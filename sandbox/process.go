// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
)

// A Process is a server that was started, together with the tree below it. Its
// methods may be called from any goroutine.
type Process struct {
	handle   // to the launcher, or where there is none, to the server
	pid      int
	enforced Enforcement
	confined Confinement
	over     atomic.Bool
	refused  func(Refusal) // nil when nobody wants to know

	exit   Exit          // written before exited is closed
	exited chan struct{} // the main process has ended
	gone   chan struct{} // so has the tree, and its launcher is reaped
}

// Start starts a server. When it returns without an error the server's program
// has been executed and its PID is known. Every error is a *StartError, and
// nothing is left running or open then.
func Start(spec Spec, stdio Stdio) (*Process, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	stdio, closeNull, err := stdio.filled()
	if err != nil {
		return nil, &StartError{Op: OpLaunch, Err: err}
	}
	defer closeNull()
	p := &Process{exited: make(chan struct{}), gone: make(chan struct{}), refused: spec.Refused}
	if err := p.start(&spec, stdio); err != nil {
		return nil, err
	}
	p.confined = spec.Policy.confinement()
	return p, nil
}

// filled puts the null device in the place of what is nil.
func (s Stdio) filled() (Stdio, func(), error) {
	if s.Stdin != nil && s.Stdout != nil && s.Stderr != nil {
		return s, func() {}, nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return s, nil, fmt.Errorf("opening the null device: %w", bare(err))
	}
	for _, file := range []**os.File{&s.Stdin, &s.Stdout, &s.Stderr} {
		if *file == nil {
			*file = null
		}
	}
	return s, func() { null.Close() }, nil
}

// PID returns the process id of the server itself, not of its launcher.
func (p *Process) PID() int { return p.pid }

// Enforcement returns what is in force of Spec.Limits.
func (p *Process) Enforcement() Enforcement { return p.enforced }

// Confinement returns what holds the server to Spec.Policy.
func (p *Process) Confinement() Confinement { return p.confined }

// Over reports whether the tree is being ended, or was, since it used more memory
// than it may. It may be known before the server has exited, and is in its Exit.
func (p *Process) Over() bool { return p.over.Load() }

// Used returns how many bytes of memory the tree uses at this moment: what its
// processes share with each other or with others is divided by their number. It is
// false where nobody can tell. It takes some milliseconds.
func (p *Process) Used() (bytes int64, ok bool) {
	if closed(p.exited) {
		return 0, false
	}
	return p.used()
}

// Signal sends sig to the server's process group and to everything in the tree
// that left the group. It returns os.ErrProcessDone once the server has exited.
// The signal is sent by the launcher, after Signal has returned.
func (p *Process) Signal(sig os.Signal) error {
	if closed(p.exited) {
		return os.ErrProcessDone
	}
	return p.signal(sig)
}

// Terminate asks the whole tree to end: SIGTERM, sent as Signal does.
func (p *Process) Terminate() error { return p.Signal(syscall.SIGTERM) }

// Kill ends everything that ever descended from the server, by SIGKILL, and
// doesn't wait for that: see Gone. It can't be undone or refused, and calling it
// again, or late, does nothing.
func (p *Process) Kill() error {
	if closed(p.gone) {
		return nil
	}
	return p.kill()
}

// Exited returns a channel that is closed when the server's main process has
// exited. The rest of the tree is killed from then on.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Exit returns how the server ended. It is the zero Exit before Exited is
// closed.
func (p *Process) Exit() Exit {
	if !closed(p.exited) {
		return Exit{}
	}
	return p.exit
}

// Gone returns a channel that is closed when no process of the tree exists any
// longer and the launcher has been reaped. There is no limit to how long a
// process that the kernel can't kill at the moment (state D in ps(1)) keeps it
// open: who waits brings a timeout.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// finish records how the server ended.
func (p *Process) finish(exit Exit) {
	p.exit = exit
	close(p.exited)
}

// closed reports whether ch is closed.
func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// bare takes the system's error out of the operation and the path that package
// os wraps around it, where both would be said twice or name the launcher.
func bare(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}
