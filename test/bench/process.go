// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is one that this program started.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *os.File
	stderr *tail
	ended  chan struct{} // closed when it is over
}

// A program is what to start, and where.
type program struct {
	path string
	args []string
	env  []string // all of it; nil for that of this process
	dir  string
}

func (p program) String() string { return strings.Join(append([]string{p.path}, p.args...), " ") }

// start starts a program, which ends with ctx at the latest.
func (p program) start(ctx context.Context) (*process, error) {
	cmd := exec.CommandContext(ctx, p.path, p.args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.env, p.dir, 10*time.Second
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	s := &process{cmd: cmd, stderr: new(tail), ended: make(chan struct{})}
	cmd.Stderr = s.stderr
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p, err)
	}
	out, into, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p, err)
	}
	defer into.Close() // it is the child's
	cmd.Stdout, s.out = into, out
	if err := cmd.Start(); err != nil {
		out.Close()
		return nil, fmt.Errorf("starting %s: %w", p, err)
	}
	// Ends with the process; stop waits for it.
	go func() {
		_ = cmd.Wait() // how it ended is in its ProcessState
		close(s.ended)
	}()
	return s, nil
}

// stop ends the process: by the end of its input, then by signals.
func (s *process) stop() {
	s.in.Close()
	for _, signal := range []os.Signal{nil, syscall.SIGTERM, syscall.SIGKILL} {
		if signal != nil {
			_ = s.cmd.Process.Signal(signal) // one that is gone is what is wanted
		}
		if s.gone(5 * time.Second) {
			return
		}
	}
}

// terminate ends a process that doesn't end with its input.
func (s *process) terminate() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // one that is gone is what is wanted
	if !s.gone(20 * time.Second) {
		s.stop()
	}
}

// gone reports whether the process ends within a time.
func (s *process) gone(within time.Duration) bool {
	select {
	case <-s.ended:
		return true
	case <-time.After(within):
		return false
	}
}

// explain adds to an error what the process said last.
func (s *process) explain(err error) error {
	if said := s.stderr.String(); said != "" {
		return fmt.Errorf("%w; its standard error ends in:\n%s", err, said)
	}
	return err
}

// memory returns a line of /proc/PID/status in bytes (proc(5)), such as VmRSS.
func memory(pid int, line string) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading memory: %w", err)
	}
	return kilobytes(text, line)
}

// kilobytes reads a line such as "VmRSS:  12 kB", in bytes.
func kilobytes(text []byte, name string) (int, error) {
	for line := range bytes.Lines(text) {
		value, found := bytes.CutPrefix(line, []byte(name+":"))
		if !found {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(value)), " kB"))
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", name, err)
		}
		return n << 10, nil
	}
	return 0, fmt.Errorf("reading memory: no line %s", name)
}

// resetPeak lets VmHWM begin anew.
func resetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting peak memory: %w", err)
	}
	return nil
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	const limit = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-limit):]
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
