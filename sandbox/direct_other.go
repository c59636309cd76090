// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
)

// A handle is the server's own process: there is no launcher here.
type handle struct {
	server *os.Process
	files  Files
}

// Main does nothing on this system.
func Main() {}

// Adopt does nothing on this system.
func Adopt() error { return nil }

// start executes the server and watches it.
func (p *Process) start(spec *Spec, stdio Stdio) *StartError {
	if err := spec.Files.write(); err != nil {
		return &StartError{Op: OpLaunch, Err: err}
	}
	server, err := os.StartProcess(spec.Path, spec.argv(), &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   append([]string{}, spec.Env...), // not nil, which would mean the host's
		Files: []*os.File{stdio.Stdin, stdio.Stdout, stdio.Stderr},
	})
	if err != nil {
		spec.Files.remove()
		return startFailure(spec, err)
	}
	p.server, p.pid, p.files = server, server.Pid, spec.Files
	p.enforced = spec.Limits.unenforced()
	go p.watch() // ends when the server has; closes p.gone for whoever waits
	return nil
}

// startFailure finds out whether it was the directory.
func startFailure(spec *Spec, err error) *StartError {
	if spec.Dir != "" {
		if _, err := os.Stat(spec.Dir); err != nil {
			return &StartError{Op: OpChdir, Path: spec.Dir, Err: bare(err)}
		}
	}
	return &StartError{Op: OpExec, Path: spec.Path, Err: bare(err)}
}

// watch waits for the server's end.
func (p *Process) watch() {
	defer close(p.gone)
	defer p.files.remove()
	state, err := p.server.Wait()
	if err != nil {
		p.finish(Exit{Code: -1})
		return
	}
	p.finish(Exit{Code: state.ExitCode(), User: state.UserTime(), System: state.SystemTime()})
}

// used: nobody can tell what the server uses.
func (p *Process) used() (int64, bool) { return 0, false }

// signal knows os.Kill alone; package os refuses the others.
func (p *Process) signal(sig os.Signal) error {
	if err := p.server.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending signal %v: %w", sig, err)
	}
	return nil
}

// kill ends the server's main process.
func (p *Process) kill() error {
	if err := p.server.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing process %d: %w", p.pid, err)
	}
	return nil
}
