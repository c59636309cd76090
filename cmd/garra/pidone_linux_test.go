// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// inContainer is a command with the process ids of a container: its program is process 1.
func inContainer(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	flags := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() != 0 {
		flags = append(flags, "--user", "--map-current-user")
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		t.Skipf("pid namespaces can't be had here: %v: %s", err, out)
	}
	return exec.CommandContext(t.Context(), "unshare", append(append(flags, program), args...)...)
}

// children are the processes whose parent a process is.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		t.Skip("the kernel doesn't list children (CONFIG_PROC_CHILDREN)")
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child)
		}
	}
	return pids
}

// exists reports whether there is a process, be it only one that nobody has collected.
func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return !errors.Is(err, fs.ErrNotExist)
}

// orphan starts a process in the container of process 1 that process 1 inherits, and
// returns its id out here.
func orphan(t *testing.T, first int) (pid int) {
	t.Helper()
	before := children(t, first)
	enter := exec.CommandContext(t.Context(), "nsenter", "--target", strconv.Itoa(first), "--pid",
		"sh", "-c", "sleep 4242 > /dev/null 2>&1 &")
	if os.Geteuid() != 0 {
		enter.Args = append(enter.Args[:3], append([]string{"--user", "--preserve-credentials"}, enter.Args[3:]...)...)
	}
	if out, err := enter.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	within(t, "process 1 has the orphan", func() bool {
		for _, child := range children(t, first) {
			if cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); err == nil &&
				bytes.HasPrefix(cmdline, []byte("sleep\x00")) && !slices.Contains(before, child) {
				pid = child
			}
		}
		return pid != 0
	})
	return pid
}

// kill kills a process that the test has started.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Garra as process 1 collects strangers, takes only what is its own, and hears signals.
func TestProcessOne(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	cmd := inContainer(t, h.garra, "serve", "--listen", "127.0.0.1:0", "--no-auth")
	cmd.Env = h.env(passphraseVariable+"=a passphrase that occurs nowhere else", "GARRA_UNRELATED=stays")
	p := start(t, cmd)
	h.serving(p)
	first := children(t, cmd.Process.Pid)[0]
	gateway := children(t, first)[0]

	ended, lives := orphan(t, first), orphan(t, first)
	kill(t, ended)
	within(t, "the orphan that ended is collected", func() bool { return !exists(ended) })

	// The exit of a server is told to garra, and its guardian's death, too: garra then kills
	// what is left of that server's tree, and nobody else.
	if err := h.command("mcp", "call", "one", "crash", "--args", `{"code":37}`).Run(); err == nil {
		t.Error("the server did not crash")
	}
	within(t, "garra knows how the server ended", func() bool { return p.said("37") })
	h.must("mcp", "restart", "one")
	guardian := children(t, gateway)[0]
	kill(t, guardian)
	within(t, "the guardian is collected", func() bool { return !exists(guardian) })
	h.must("mcp", "restart", "one")
	if !exists(lives) {
		t.Error("a stranger was killed")
	}

	replacing := start(t, h.command("serve", "--replace", "--no-auth"))
	if code := replacing.code(); code != 1 || !replacing.said("it is process 1 of a container") {
		t.Errorf("it is replaced: exit code %d", code)
	}

	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", first))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(environ, []byte("GARRA_UNRELATED=stays")) || bytes.Contains(environ, []byte("nowhere else")) {
		t.Errorf("process 1 shows %q", environ)
	}
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	within(t, "everything in the container is gone", func() bool { return !exists(lives) && !exists(gateway) })
}

// Process 1 ends as its child does.
func TestProcessOneEndsAsItsChild(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	for want, args := range map[int][]string{
		0: {"version"}, 1: {"mcp", "restart", "one"}, 2: {"no-such-command"},
	} {
		cmd := inContainer(t, h.garra, args...)
		cmd.Env = h.env()
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != want {
			t.Errorf("garra %q: exit code %d, want %d", args, cmd.ProcessState.ExitCode(), want)
		}
	}
	cmd := inContainer(t, h.garra, "serve", "--listen", "127.0.0.1:0", "--no-auth")
	cmd.Env = h.env()
	p := start(t, cmd)
	h.serving(p)
	kill(t, children(t, children(t, cmd.Process.Pid)[0])[0])
	if code := p.code(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
}

// What a service manager has opened for process 1 reaches its child.
func TestSocketsOfProcessOne(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	files, addresses := sockets(t, filepath.Join(h.folder, "clients"))
	cmd := inContainer(t, h.garra, "serve", "--no-auth")
	cmd.Env = h.env("LISTEN_FDS=3", "LISTEN_PID=1")
	cmd.ExtraFiles = files
	p := start(t, cmd)
	h.serving(p)
	if run, _ := h.run(); run.Address != addresses[0] {
		t.Errorf("it listens at %s, not at %s", run.Address, addresses[0])
	}
	if err := syscall.Kill(children(t, cmd.Process.Pid)[0], syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
