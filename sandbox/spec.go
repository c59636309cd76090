// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A Spec says what to run and what it may touch.
type Spec struct {
	// Path is the file to execute. It is not looked up in PATH; a relative one
	// is relative to Dir.
	Path string
	// Args is the argument vector, argv[0] included; empty means Path alone.
	Args []string
	// Env is the whole environment, in "NAME=value" form; nothing is added.
	Env []string
	// Dir is the working directory; empty means the host's.
	Dir string
	// Files are there when the server starts and gone when its tree is.
	Files Files
	// Limits are what its tree may use.
	Limits Limits
	// Policy is what it may touch.
	Policy Policy
	// Refused, if not nil, is told of connections that Policy didn't let the server have,
	// one after the other, and not of each when there are many. What comes of the server
	// waits until it returns.
	Refused func(Refusal)

	probe bool // execute nothing: it is tried what can be had
}

// check refuses what no system can execute.
func (s *Spec) check() *StartError {
	if s.Path == "" {
		return &StartError{Op: OpExec, Err: errors.New("empty path")}
	}
	for _, text := range slices.Concat([]string{s.Path, s.Dir}, s.Args, s.Env) {
		if strings.ContainsRune(text, 0) {
			return &StartError{Op: OpExec, Path: s.Path, Err: errNUL}
		}
	}
	if err := s.Files.check(); err != nil {
		return &StartError{Op: OpLaunch, Err: err}
	}
	if err := s.Limits.check(); err != nil {
		return &StartError{Op: OpLimit, Err: err}
	}
	if err := s.Policy.check(); err != nil {
		return &StartError{Op: OpConfine, Err: err}
	}
	return nil
}

// argv returns Args, or Path alone in its place.
func (s *Spec) argv() []string {
	if len(s.Args) == 0 {
		return []string{s.Path}
	}
	return s.Args
}

// errNUL says no value: what holds the zero byte may be a secret.
var errNUL = errors.New("a path, an argument or an environment value contains a zero byte")

// Stdio holds the server's ends of its three standard streams. A nil one is the
// null device. Start doesn't close them; the host closes its copies once Start
// has returned, or it will never see the end of the server's output.
type Stdio struct {
	Stdin, Stdout, Stderr *os.File
}

// What was being done when a start failed: values of StartError.Op.
const (
	OpLaunch      = "launch"      // starting the launcher, or preparing inside it
	OpLimit       = "limit"       // setting one of Spec.Limits
	OpConfine     = "confine"     // having Spec.Policy hold
	OpChdir       = "chdir"       // entering Spec.Dir
	OpExec        = "exec"        // executing Spec.Path
	OpInterpreter = "interpreter" // as OpExec: Spec.Path exists, what its #! line or ELF header names doesn't
)

// A StartError is the error of [Start]. Err is a syscall.Errno where the system
// gave one, so errors.Is tells ENOENT (also fs.ErrNotExist), EACCES (also
// fs.ErrPermission), ENOEXEC, E2BIG, EAGAIN and EMFILE apart.
type StartError struct {
	Op   string // one of the Op constants
	Path string // Spec.Dir for OpChdir, empty for OpLaunch, OpLimit and OpConfine, else Spec.Path
	Err  error
}

// Error describes the failure; Path is quoted, as a server's entry is input.
func (e *StartError) Error() string {
	switch e.Op {
	case OpChdir:
		return fmt.Sprintf("entering directory %q: %v", e.Path, e.Err)
	case OpInterpreter:
		return fmt.Sprintf("executing %q: the file exists, but its interpreter doesn't: %v", e.Path, e.Err)
	case OpLimit:
		return fmt.Sprintf("limiting the server: %v", e.Err)
	case OpConfine:
		return fmt.Sprintf("confining the server: %v", e.Err)
	case OpExec:
		return fmt.Sprintf("executing %q: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("starting the launcher: %v", e.Err)
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }
