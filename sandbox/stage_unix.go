// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
)

// A stage is garra executed a third time: the process that becomes the server.
// It waits until the launcher has put it into its control groups, confines and limits
// itself, where the launcher would confine itself too, and executes the server's program.

// stageName is argv[0] by which Main knows a stage.
const stageName = "garra-stage"

// A stageRequest is what the launcher sends a stage, on its descriptor 3.
type stageRequest struct {
	Path   []byte   `json:"path"`
	Args   [][]byte `json:"args"`
	Env    [][]byte `json:"env"`
	Rlimit []rlimit `json:"rlimit"`

	Confine *confinement `json:"confine,omitempty"`
}

// An rlimit is one resource limit, soft and hard.
type rlimit struct {
	Name     string `json:"name"` // RLIMIT_…
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// set sets the limit. Where a smaller one is in force that can't be raised, it stays.
func (r *rlimit) set() error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(r.Resource, &now); err != nil {
		return err
	}
	value := min(uint64(now.Max), r.Value)
	return syscall.Setrlimit(r.Resource, newRlimit(value))
}

// newRlimit returns a limit whose hard and soft value are the same.
func newRlimit(value uint64) *syscall.Rlimit {
	var r syscall.Rlimit
	assign(&r.Cur, value)
	assign(&r.Max, value)
	return &r
}

// assign sets a field whose type differs between systems.
func assign[T int64 | uint64](field *T, value uint64) { *field = T(value) }

// A stageFailure is what a stage answers when it can't execute the program; else
// its end of the socket closes without an answer. It is of a fixed size, so that
// to write it takes no memory, of which there may be little by then.
type stageFailure struct {
	Part  stagePart
	Index int32 // of the limit that could not be set, or of the step of confineSteps
	Errno uint32
}

// A stagePart is a part of what a stage does.
type stagePart int32

const (
	partExec stagePart = iota
	partLimit
	partConfine
	partNames    // no failure: the sockets on which names are asked for, UDP and TCP, from the init
	partListener // no failure: what receives the calls that a gate answers
)

// runStage is the stage. It returns only when it failed.
func runStage() error {
	runtime.LockOSThread()
	debug.SetGCPercent(-1) // a collection starts threads, whose memory the limits count
	syscall.CloseOnExec(controlFD)
	control := os.NewFile(controlFD, "control")
	var r stageRequest
	if err := json.NewDecoder(control).Decode(&r); err != nil {
		return errors.New("no request on descriptor 3; garra starts this program, people don't")
	}
	path, args, env := string(r.Path), toStrings(r.Args), toStrings(r.Env)
	answer := make([]byte, 0, binary.Size(stageFailure{}))
	fail := func(part stagePart, index int, err error) error {
		answer = binary.NativeEndian.AppendUint32(answer, uint32(part))
		answer = binary.NativeEndian.AppendUint32(answer, uint32(index))
		answer = binary.NativeEndian.AppendUint32(answer, uint32(errnoOf(err)))
		_, err = syscall.Write(controlFD, answer)
		return err
	}
	if r.Confine != nil {
		if step, err := r.Confine.confine(); err != nil {
			return fail(partConfine, step, err)
		}
		if r.Confine.Probe {
			return nil
		}
	}
	// After what takes descriptors and memory to do.
	for i := range r.Rlimit {
		if err := r.Rlimit[i].set(); err != nil {
			return fail(partLimit, i, err)
		}
	}
	return fail(partExec, 0, syscall.Exec(path, args, env))
}

// errnoOf returns the system's error in err.
func errnoOf(err error) syscall.Errno {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return syscall.EINVAL // what package syscall itself refuses
}

// startStaged starts the server under its limits and returns its process id.
func (l *launcher) startStaged(spec *Spec) (pid int, failure *failedReport) {
	l.group, failure = newGroup(&spec.Limits)
	if failure != nil {
		return 0, failure
	}
	l.enforced = enforcement(&spec.Limits, l.group)
	request := &stageRequest{
		Path: []byte(spec.Path), Args: toBytes(spec.Args), Env: toBytes(spec.Env),
		Rlimit: rlimits(&spec.Limits, l.group, l.enforced.Memory), Confine: l.confine,
	}
	pid, failure = l.runStage(request)
	if failure != nil {
		l.group.remove()
		if failure.Op == OpExec {
			failure.Op = execOp(spec.Path, failure.Errno)
		}
		return 0, failure
	}
	return pid, nil
}

// runStage starts a stage, puts it into the group, and has it become the server.
func (l *launcher) runStage(r *stageRequest) (pid int, failure *failedReport) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, newFailedReport(OpLaunch, "making a socket", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "stage")
	defer ours.Close()
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	l.gate, err = newGate(r.Confine, l.refused)
	if err != nil {
		syscall.Close(fds[1])
		return 0, newFailedReport(OpConfine, "making a gate to the network", err)
	}
	pid, failure = l.forkStage(r, fds[1])
	syscall.Close(fds[1])
	if failure != nil {
		return 0, failure
	}
	failure = l.group.put(pid)
	if failure == nil {
		failure = r.send(ours, l.gate)
	}
	if failure != nil {
		syscall.Kill(pid, syscall.SIGKILL)
		syscall.Wait4(pid, nil, 0, nil) // not here when it is an init's child
		l.endInit()
	}
	return pid, failure
}

// forkStage starts a stage with its end of a socket, in namespaces if it is to be.
func (l *launcher) forkStage(r *stageRequest, socket int) (pid int, failure *failedReport) {
	if r.Confine != nil && r.Confine.Level == LevelNamespaces {
		return l.startInit(r.Confine, socket)
	}
	pid, err := syscall.ForkExec(launcherPath(), []string{stageName}, &syscall.ProcAttr{
		Env:   launcherEnv(),
		Files: []uintptr{0, 1, 2, uintptr(socket)},
		Sys:   serverAttr(),
	})
	if err != nil {
		return 0, newFailedReport(OpLaunch, "starting the stage", err)
	}
	return pid, nil
}

// send hands the request over and waits for what comes of it. What the stage hands over
// itself is the gate's.
func (r *stageRequest) send(stage *os.File, g *gate) *failedReport {
	if err := json.NewEncoder(stage).Encode(r); err != nil {
		return newFailedReport(OpLaunch, "speaking to the stage", err)
	}
	failed, files, err := receiveFiles(stage)
	for err == nil && len(files) > 0 {
		if err := g.take(failed.Part, files); err != nil {
			return newFailedReport(OpConfine, "making a gate to the network", err)
		}
		failed, files, err = receiveFiles(stage)
	}
	switch {
	case errors.Is(err, io.EOF): // closed by exec
		return nil
	case err != nil:
		return newFailedReport(OpLaunch, "hearing from the stage", err)
	case failed.Part == partLimit && int(failed.Index) < len(r.Rlimit):
		doing := "setting " + r.Rlimit[failed.Index].Name
		return newFailedReport(OpLimit, doing, syscall.Errno(failed.Errno))
	case failed.Part == partConfine && int(failed.Index) < len(confineSteps()):
		return newFailedReport(OpConfine, confineSteps()[failed.Index], syscall.Errno(failed.Errno))
	}
	return newFailedReport(OpExec, "", syscall.Errno(failed.Errno))
}
