// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// addPlatformParts adds the parts of processes that lower limits and privileges.
func addPlatformParts(all map[string]func([]string) error) {
	all["memory"], all["exposed"], all["wait"] = useLittleMemory, openExposed, waitForever
	addKillParts(all)
}

// publicDir returns a new folder that every user can come to. It needs root.
func publicDir(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	dir, err := os.MkdirTemp("/tmp", "garra-vault-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	chmod(t, dir, 0o755)
	return dir
}

// unprivileged returns a command that runs the test binary as a part, without any
// privilege. The binary is linked, or copied, to dir, where that user can reach it.
func unprivileged(t *testing.T, dir, part string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := child(t, part, args...)
	self := cmd.Path
	cmd.Path = filepath.Join(dir, "vault.test")
	if err := os.Link(self, cmd.Path); err != nil && !errors.Is(err, fs.ErrExist) {
		binary, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cmd.Path, binary, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	chmod(t, cmd.Path, 0o755)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

// useLittleMemory is the part of a process that may lock only so many KiB, and
// opens many values at once. Its arguments are the soft and the hard limit.
func useLittleMemory(args []string) error {
	soft, err1 := strconv.ParseUint(args[0], 10, 32)
	hard, err2 := strconv.ParseUint(args[1], 10, 32)
	limit := unix.Rlimit{Cur: soft << 10, Max: hard << 10}
	err := errors.Join(err1, err2, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit))
	if err != nil {
		return err
	}
	if _, err := Seal([]byte("before")); err != nil {
		if lerr := LockMemory(); !errors.Is(lerr, ErrNoLockedMemory) {
			return fmt.Errorf("Seal says %w, and LockMemory %w", err, lerr)
		}
		fmt.Println("refused:", err)
		if err := LockMemory(Unlocked); err != nil {
			return err
		}
	}
	if err := manyAtOnce(); err != nil {
		return err
	}
	large, err := Seal(make([]byte, 64<<10))
	if err != nil {
		return err
	}
	fmt.Println("large:", large.Use(func([]byte) error { return nil }))
	return nil
}

// manyAtOnce seals and opens values in many goroutines.
func manyAtOnce() error {
	var work sync.WaitGroup
	failed := make(chan error, 24)
	for i := range cap(failed) {
		work.Go(func() {
			want := strings.Repeat(strconv.Itoa(i), 300)
			s, err := Seal([]byte(want))
			if err != nil {
				failed <- err
				return
			}
			for range 3 {
				if got, err := s.Reveal(); err != nil || got != want || !s.Equal(s) {
					failed <- fmt.Errorf("got %.20q, %w", got, err)
					return
				}
			}
		})
	}
	work.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// With little lockable memory values wait for each other, and with too little
// there is a refusal: nothing hangs.
func TestLittleMemory(t *testing.T) {
	dir := publicDir(t)
	page := os.Getpagesize() / 1024
	for _, c := range []struct {
		soft, hard int // in pages
		refused    bool
		large      string
	}{
		{0, 0, true, "large: <nil>"},
		{4, 4, true, "large: <nil>"},
		{8, 8, false, "too little lockable memory for a value of 65536 bytes"},
		{16, 16, false, "too little lockable memory for a value of 65536 bytes"},
		{1, 64, false, "large: <nil>"}, // the soft limit is raised
		{2048, 2048, false, "large: <nil>"},
	} {
		t.Run(fmt.Sprintf("%d of %d pages", c.soft, c.hard), func(t *testing.T) {
			cmd := unprivileged(t, dir, "memory", strconv.Itoa(c.soft*page), strconv.Itoa(c.hard*page))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			refused := strings.Contains(string(out), "refused: ")
			if refused != c.refused || refused && !strings.Contains(string(out), "ulimit -l") {
				t.Errorf("got %s", out)
			}
			if !strings.Contains(string(out), c.large) {
				t.Errorf("got %s; want %q", out, c.large)
			}
		})
	}
}

// Importing memguard catches no signals: those that end a program still end it.
func TestSignalsAreLeftAlone(t *testing.T) {
	cmd := child(t, "wait")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("ready"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v", cmd.ProcessState)
	}
}

// waitForever is the part of a process that has a value, says so, and stays.
func waitForever([]string) error {
	if _, err := Seal([]byte("x")); err != nil {
		return err
	}
	fmt.Print("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
