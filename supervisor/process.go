// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"time"

	"github.com/garraia/garra/sandbox"
)

// A process is one running server with garra's ends of its pipes.
type process struct {
	*sandbox.Process
	stdin          *os.File
	stdout, stderr *os.File
	drained        chan struct{} // closed when stderr was read to its end
}

// startProcess starts a server. On an error nothing is left open.
func startProcess(spec sandbox.Spec) (_ *process, err error) {
	var files []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
			files = append(files, r, w)
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		closeAll(files)
		return nil, err
	}
	proc, err := sandbox.Start(spec, sandbox.Stdio{Stdin: inR, Stdout: outW, Stderr: errW})
	if err != nil {
		closeAll(files)
		return nil, err
	}
	closeAll([]*os.File{inR, outW, errW})
	return &process{
		Process: proc, stdin: inW, stdout: outR, stderr: errR, drained: make(chan struct{}),
	}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// stop brings the process down in the order of the specification and reports
// whether all of its tree is gone. Its output is still open then.
func (p *process) stop(l *limits) bool {
	p.stdin.Close()
	if !waitFor(l.eof, p.Exited()) {
		p.Terminate()
		if !waitFor(l.term, p.Exited()) {
			p.Kill()
		}
	}
	if waitFor(l.kill, p.Gone()) {
		return true
	}
	p.Kill() // of a server that has exited, what is left of the tree
	return waitFor(l.kill, p.Gone())
}

// close releases the pipes, which ends whoever still reads from them.
func (p *process) close() { closeAll([]*os.File{p.stdin, p.stdout, p.stderr}) }

// waitFor waits until all channels are closed, but not longer than d.
func waitFor(d time.Duration, all ...<-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, done := range all {
		select {
		case <-done:
			continue
		default:
		}
		select {
		case <-done:
		case <-timer.C:
			return false
		}
	}
	return true
}
