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
// whether all of its tree is gone. It also releases the pipes.
func (p *process) stop() bool {
	defer func() {
		closeAll([]*os.File{p.stdout, p.stderr})
	}()
	p.stdin.Close()
	if !waitFor(p.Exited(), eofGrace) {
		p.Terminate()
		if !waitFor(p.Exited(), termGrace) {
			p.Kill()
		}
	}
	if waitFor(p.Gone(), killGrace) {
		return true
	}
	p.Kill()
	return waitFor(p.Gone(), killGrace)
}

// waitFor waits for done, but not longer than d.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
