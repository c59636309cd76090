// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roles are the hosts that tests kill, starve and start in odd states.
func roles() map[string]func(args []string) error {
	return map[string]func(args []string) error{
		"host":         hostTree,
		"deleted-host": hostDeleted,
		"run":          hostRun,
		"host-escapes": hostEscapes,
		"escapes":      playEscapes,
		"euid":         sayUser,
		"few-files":    hostFewFiles,
		"few-procs":    hostFewProcesses,
		"hog":          hog,
		"host-hog":     hostHog,
		"internet":     playInternet,
		"host-visit":   hostVisit,
		"fetch":        playFetch,
		"trespass":     playTrespass,
		"crowd":        playCrowd,
		"socket":       playSocket,
		"measure":      playMeasure,
	}
}

// role returns a command that plays a role.
func role(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = append([]string{roleName}, args...)
	cmd.Stderr = os.Stderr
	return cmd
}

// levelVariable tells a host at which level to confine.
const levelVariable = "SANDBOX_TEST_LEVEL"

// hostTree hosts a script and stays until its input ends.
func hostTree(args []string) error {
	spec := Spec{Path: "/bin/sh", Args: []string{"sh", "-c", args[0]}, Env: withPath(args[1:])}
	spec.Policy.Level = Level(os.Getenv(levelVariable))
	p, err := Start(spec, Stdio{Stderr: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Println(p.PID(), p.launcher.Pid)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// hostDeleted deletes its own file and then hosts "echo".
func hostDeleted([]string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Dir(self)); err != nil {
		return err
	}
	return hostRun([]string{"/bin/echo", "started"})
}

// hostRun hosts a program on its own standard streams until that has exited.
func hostRun(args []string) error {
	p, err := Start(Spec{Path: args[0], Args: args, Policy: Policy{Level: Level(os.Getenv(levelVariable))}},
		Stdio{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	<-p.Gone()
	return nil
}

// hostFewFiles starts servers with ever more descriptors to be had, from none.
func hostFewFiles([]string) error {
	hostOnce() // opens what the runtime keeps open
	used, err := openFiles()
	if err != nil {
		return err
	}
	return starve(unix.RLIMIT_NOFILE, used, func() error {
		if now, err := openFiles(); err != nil || now != used {
			return fmt.Errorf("open files: %d, then %d, %w", used, now, err)
		}
		return nil
	})
}

// openFiles counts with the calls that need no new descriptor.
func openFiles() (int, error) {
	open := 0
	for fd := range 256 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			open++
		}
	}
	return open, nil
}

// hostFewProcesses does the same with processes. The Go runtime ends a program
// that can't have a thread, so this one gets its own before.
func hostFewProcesses([]string) error {
	var pipes [8][2]int
	for i := range pipes {
		if err := unix.Pipe2(pipes[i][:], unix.O_CLOEXEC); err != nil {
			return err
		}
		go unix.Read(pipes[i][0], make([]byte, 1)) // holds a thread until the write below
	}
	hostOnce()
	for i := range pipes {
		unix.Write(pipes[i][1], []byte{0})
	}
	return starve(unix.RLIMIT_NPROC, 1, func() error { return nil })
}

// hostOnce starts and ends one server without any limit.
func hostOnce() {
	if p, err := Start(Spec{Path: "/bin/true"}, Stdio{}); err == nil {
		<-p.Gone()
	}
}

// starve starts servers under a limit that grows from base until one starts,
// and calls check after each failure.
func starve(resource, base int, check func() error) error {
	var before unix.Rlimit
	if err := unix.Getrlimit(resource, &before); err != nil {
		return err
	}
	for limit := base; limit < base+100; limit++ {
		small := unix.Rlimit{Cur: uint64(limit), Max: before.Max}
		if err := unix.Prlimit(0, resource, &small, nil); err != nil {
			return err
		}
		p, err := Start(Spec{Path: "/bin/true"}, Stdio{})
		unix.Prlimit(0, resource, &before, nil)
		if err == nil {
			<-p.Gone()
			return check()
		}
		fmt.Println(err)
		if err := check(); err != nil {
			return err
		}
	}
	return fmt.Errorf("no start under any limit up to %d", base+100)
}

// asUser runs a command as a user who has no other process.
func asUser(cmd *exec.Cmd, uid uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

// sayUser prints which user this process has the rights of.
func sayUser([]string) error {
	_, err := fmt.Println(os.Geteuid())
	return err
}
