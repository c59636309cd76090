// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
)

// holder is the first argument of the test binary as a process that takes the
// lock of its second argument, says so, and stays.
const holder = "filelock-holder"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == holder {
		if _, err := Try(os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("locked")
		// The parent keeps the pipe open, and kills this process.
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

func TestTryDoesNotWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := Try(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	again, err := Try(path)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	again()
}

// Every holder has the lock alone, and whoever waits gets it in the end.
func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	const each, holders = 50, 4
	done := make(chan error, holders)
	var inside, total atomic.Int32 // the race detector doesn't know of flock(2)
	for range holders {
		go func() {
			for range each {
				unlock, err := Lock(path)
				if err != nil {
					done <- err
					return
				}
				n := inside.Add(1)
				runtime.Gosched()
				if n != 1 {
					err = fmt.Errorf("%d hold the lock", n)
				}
				inside.Add(-1)
				total.Add(1)
				unlock()
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range holders {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if got := total.Load(); got != each*holders {
		t.Errorf("%d times, want %d", got, each*holders)
	}
}

func TestAFolderThatIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere", "lock")
	if _, err := Try(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A process that is killed leaves no lock behind, though its file stays.
func TestALockEndsWithItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, holder, path)
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
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	if _, err := Try(path); !errors.Is(err, ErrLocked) {
		t.Errorf("while the other process lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
