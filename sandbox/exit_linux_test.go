// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestExitIsTheServers(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		code   int
		signal syscall.Signal
	}{
		"success":   {"exit 0", 0, 0},
		"code":      {"exit 3", 3, 0},
		"last code": {"exit 255", 255, 0},
		"segfault":  {"kill -SEGV $$", -1, syscall.SIGSEGV},
		"killed":    {"kill -KILL $$", -1, syscall.SIGKILL},
		"child's":   {"(exit 9); exit 4", 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := shell(t, test.script)
			wait(t, 5*time.Second, "the server has exited", s.Exited())
			got := s.Exit()
			if got.Code != test.code || got.Signal != test.signal || got.Lost {
				t.Errorf("got %+v, want code %d, signal %d", got, test.code, test.signal)
			}
			if got.MaxRSS < 100<<10 || got.MaxRSS > 1<<30 {
				t.Errorf("a shell's largest resident set: %d bytes", got.MaxRSS)
			}
		})
	}
}

func TestExitCountsCPUTime(t *testing.T) {
	s := shell(t, `i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done`)
	if got := s.Exit(); got != (Exit{}) {
		t.Errorf("before the end: %+v", got)
	}
	wait(t, 30*time.Second, "the loop has ended", s.Exited())
	if got := s.Exit(); got.User < 10*time.Millisecond || got.User > 30*time.Second {
		t.Errorf("CPU time of the loop: %v", got.User)
	}
}

func TestPIDIsTheServers(t *testing.T) {
	s := shell(t, `echo $$; read wait`)
	if got, want := s.line(t), strconv.Itoa(s.PID()); got != want {
		t.Errorf("PID: the server says %s, Process says %s", got, want)
	}
}

func TestSignalsAfterTheEnd(t *testing.T) {
	s := shell(t, `exit 0`)
	wait(t, 5*time.Second, "the server has exited", s.Exited())
	if err := s.Terminate(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Terminate: %v, want os.ErrProcessDone", err)
	}
	for range 2 {
		if err := s.Kill(); err != nil {
			t.Errorf("Kill: %v", err)
		}
	}
	wait(t, 5*time.Second, "the tree is gone", s.Gone())
	if err := s.Kill(); err != nil {
		t.Errorf("Kill after Gone: %v", err)
	}
}

func TestKillIsRepeatable(t *testing.T) {
	s := shell(t, `read wait`)
	for range 3 {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, 5*time.Second, "the server has exited", s.Exited())
	if got := s.Exit(); got.Signal != syscall.SIGKILL || got.Lost {
		t.Errorf("got %+v, want SIGKILL, reported by the launcher", got)
	}
}

func TestForeignSignalsAreRefused(t *testing.T) {
	s := shell(t, `read wait`)
	for _, sig := range []os.Signal{syscall.Signal(0), syscall.Signal(-9), notASignal{}} {
		if err := s.Signal(sig); err == nil {
			t.Errorf("signal %v was accepted", sig)
		}
	}
	if closed(s.Exited()) {
		t.Error("the server has exited")
	}
}

// notASignal is an os.Signal of another system.
type notASignal struct{}

func (notASignal) String() string { return "foreign" }
func (notASignal) Signal()        {}
