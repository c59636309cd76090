// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/internal/sourcetest"
	"github.com/garraia/garra/source"
)

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// needProc skips a test where processes can't be looked at.
func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc: ", err)
	}
}

// kill kills a process.
func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killing %d: %v", pid, err)
	}
}

// pidIn reads a process id that a server wrote, and returns what that is here.
func pidIn(t *testing.T, s *Server, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return sourcetest.Outside(t, s.Status().PID, pid)
}

// shell is an entry that runs the misbehaving server from a shell script, in
// which $SERVER is its command line.
func shell(script string, flags ...string) fields {
	path, args := misbehave.Command(flags...)
	line := path
	for _, a := range args {
		line += " '" + a + "'"
	}
	return fields{
		"command": "/bin/sh", "args": []string{"-c", strings.ReplaceAll(script, "$SERVER", line)},
		"restartDelaySecs": 0.1, "sandbox": map[string]any{"read": []string{path}},
	}
}

// However a server is started and whatever it leaves behind: a stop ends all.
// The entries with a worker write its process id to a file.
func TestStopEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	needProc(t)
	for name, entry := range map[string]fields{
		"shell that execs":         shell("exec $SERVER"),
		"shell that waits":         shell("$SERVER; exit $?"),
		"floods stderr":            misbehaving("--stderr-flood", "-1", "--ignore-eof"),
		"ignores the end of input": misbehaving("--ignore-eof"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopEndsAll(t, entry, "")
		})
	}
	for name, entry := range map[string]func(file string) fields{
		"shell with a worker": func(f string) fields {
			return shell("sleep 300 & echo $! >" + f + "; exec $SERVER").Writing(f)
		},
		"shell that does not pass signals on": func(f string) fields {
			return shell("trap '' TERM; sleep 300 & echo $! >"+f+"; $SERVER; wait", "--ignore-eof").Writing(f)
		},
		"grandchild":                         func(f string) fields { return misbehaving("--fork-worker", f) },
		"grandchild in a session of its own": func(f string) fields { return misbehaving("--setsid-worker", f) },
		"daemon": func(f string) fields {
			return shell("(setsid sh -c 'echo $$ >" + f + "; exec sleep 300' &); exec $SERVER").Writing(f)
		},
		"ignores SIGTERM": func(f string) fields {
			return misbehaving("--ignore-eof", "--ignore-term", "--setsid-worker", f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pid")
			stopEndsAll(t, entry(file), file)
		})
	}
}

// stopEndsAll starts a server, stops it, and looks for what is left. The id of
// its worker, if it has one, will be in a file.
func stopEndsAll(t *testing.T, entry fields, worker string) {
	t.Helper()
	r := newRig(t)
	s := r.only(entry)
	pids := []int{s.Status().PID, pidOf(t, s)}
	if worker != "" {
		eventually(t, "there is a worker", func() bool {
			data, err := os.ReadFile(worker)
			return err == nil && strings.HasSuffix(string(data), "\n")
		})
		pids = append(pids, pidIn(t, s, worker))
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("%d doesn't run", pid)
		}
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("%d still runs", pid)
		}
	}
	if got := s.Status(); got.State != source.Stopped || got.PID != 0 || got.LastError != nil {
		t.Errorf("%+v", got)
	}
}

// A process that a signal has stopped can't hear SIGTERM, but can be ended.
func TestStopOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	needProc(t)
	r := newRig(t)
	s := r.only(misbehaving())
	pid := s.Status().PID
	if out, err := exec.Command("kill", "-STOP", strconv.Itoa(pid)).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	_, err := s.Call(t.Context(), within(100*time.Millisecond, tool("echo", nil)))
	failed(t, err, source.CallTimeout)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("it still runs")
	}
}

// The input is closed before anything else is done, and a server that ends on
// that is not signalled.
func TestStopBeginsWithTheEndOfInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "marker")
	r := newRig(t, func(o *Options) { o.limits.eof = patience })
	s := r.only(misbehaving("--eof-marker", file))
	use(t, s, "sleep", args{"ms": 300})
	if exists(file) {
		t.Fatal("the input ended while the server was wanted")
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !exists(file) {
		t.Error("the server didn't see the end of its input")
	}
}

// Each step of a stop has its time, so the whole has.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--ignore-eof", "--ignore-term"))
	pid, began := s.Status().PID, time.Now()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 600*time.Millisecond || took > 5*time.Second {
		t.Errorf("%v", took)
	}
	if alive(pid) {
		t.Error("it still runs")
	}
}

// A good answer isn't lost to a server that then never exits.
func TestAnswerOfAServerThatNeverExits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--ignore-eof", "--ignore-term"))
	if got := use(t, s, "echo", args{"text": "good"}); got != "good" {
		t.Errorf("%q", got)
	}
}

func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	needProc(t)
	for name, flags := range map[string][]string{
		"silent":   {"--never-init"},
		"slow":     {"--slow-init", "1m"},
		"stubborn": {"--never-init", "--ignore-eof", "--ignore-term"},
		"busy":     {"--spin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.apply(map[string]fields{"s": misbehaving(flags...)})
			s := r.Server("s")
			eventually(t, "it runs", func() bool { return s.Status().PID != 0 })
			pid := s.Status().PID
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if alive(pid) {
				t.Error("it still runs")
			}
			if got := s.Status(); got.State != source.Stopped || got.LastError != nil {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.apply(map[string]fields{"s": misbehaving()})
		if err := r.Server("s").Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.state("s", source.Stopped)
	})
}

// A server that doesn't come is stopped after its time, and that is a failure
// with a reason.
func TestServersThatDoNotComeUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entry fields
		code  source.Code
		says  []string
	}{
		"exits silently": {
			misbehaving("--exit-at-start"), source.ServerCrashed,
			[]string{
				"ended (exit status 0) before it answered initialize", "it wrote nothing to stderr",
				"run its command in a terminal",
			},
		},
		"exits with a code": {
			misbehaving("--exit-at-start", "--exit-code", "7"), source.ServerCrashed, []string{"exit status 7"},
		},
		"throws": {
			misbehaving("--traceback"), source.ServerCrashed,
			[]string{"exit status 1", "last words on stderr", "ModuleNotFoundError: No module named 'mcp'"},
		},
		"never answers": {
			misbehaving("--never-init").With("timeoutSecs", 0.3), source.CallTimeout,
			[]string{"did not answer initialize within 300ms", "raise timeoutSecs", "it wrote nothing to stderr"},
		},
		"is too slow": {
			misbehaving("--slow-init", "1m").With("timeoutSecs", 0.3), source.CallTimeout, []string{"within 300ms"},
		},
		"is busy": {
			misbehaving("--spin").With("timeoutSecs", 0.3), source.CallTimeout, []string{"within 300ms"},
		},
		"speaks another revision": {
			misbehaving("--protocol", "1999-01-01"), source.ServerFailed, []string{"1999-01-01"},
		},
		"is no server": {
			fields{"command": "/bin/echo", "args": []string{"hello"}}, source.ServerCrashed, []string{"exit status 0"},
		},
		"closes its output": {
			shell("exec >&-; sleep 300"), source.ServerCrashed, []string{"closed its standard output"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.apply(map[string]fields{"s": test.entry.With("maxRestarts", 0)})
			f := failed(t, r.state("s", source.Parked).LastError, test.code)
			contains(t, f.Error(), test.says...)
			if strings.Count(f.Error(), f.Fix) != 1 {
				t.Errorf("the fix isn't there once: %v", f)
			}
			failed(t, r.Server("s").Restart(t.Context()), test.code)
		})
	}
}

// A server that is killed during a call: its caller knows within a second, and
// the next call finds a new process.
func TestCrashDuringACall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do    func(t *testing.T, s *Server) error
		cause string
	}{
		"killed": {func(t *testing.T, s *Server) error {
			l := linkOf(s)
			pid := s.Status().PID
			time.AfterFunc(100*time.Millisecond, func() { kill(t, pid) })
			_, err := l.call(t.Context(), tool("hang", nil), budget{timeout: time.Minute, began: time.Now()})
			return err
		}, "signal: killed"},
		"exits": {func(t *testing.T, s *Server) error {
			_, err := s.Call(t.Context(), tool("crash", args{"code": 9}))
			return err
		}, "exit status 9"},
		"closes its output": {func(t *testing.T, s *Server) error {
			_, err := s.Call(t.Context(), tool("close_stdout", nil))
			return err
		}, "closed its standard output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.only(misbehaving("--stderr-flood", "200"))
			pid, began := s.Status().PID, time.Now()
			err := test.do(t, s)
			contains(t, failed(t, err, source.ServerCrashed).Message, test.cause, "lazy dog")
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("%v", took)
			}
			if got := use(t, s, "echo", args{"text": "again"}); got != "again" {
				t.Errorf("%q", got)
			}
			if got := s.Status(); got.PID == pid || got.Restarts != 1 || got.LastError != nil {
				t.Errorf("was %d: %+v", pid, got)
			}
		})
	}
}

// Who calls a server that died just now doesn't notice.
func TestCallRightAfterAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	for range 5 {
		pid := s.Status().PID
		kill(t, pid)
		eventually(t, "it is gone", func() bool { return !exists(fmt.Sprintf("/proc/%d", pid)) })
		if got := pidOf(t, s); got == pid {
			t.Errorf("still %d", got)
		}
		if err := s.Restart(t.Context()); err != nil { // forgets the failure
			t.Fatal(err)
		}
	}
}

// A server that closes its input can't be spoken to any more, and is replaced.
func TestClosedInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--ignore-eof"))
	pid := pidOf(t, s)
	use(t, s, "close_stdin", nil)
	eventually(t, "there is another process", func() bool {
		// A process that is being forked may hold the pipe for a moment; then a
		// request is lost as it would be in a server that hangs.
		result, err := s.Call(t.Context(), within(3*time.Second, tool("pid", nil)))
		return err == nil && textOf(t, result) != strconv.Itoa(pid)
	})
	if r.Saw("closed its standard input") == "" {
		t.Error("the reason isn't told")
	}
}

// Calls in flight are answered when their server is stopped.
func TestStopDuringACall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving())
	done := make(chan error, 1)
	go func() { // ends with the server; the test waits for it
		_, err := s.Call(t.Context(), tool("hang", nil))
		done <- err
	}()
	use(t, s, "echo", nil)
	eventually(t, "both are in flight", func() bool {
		l := linkOf(s)
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.pending) == 1
	})
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	failed(t, <-done, source.ServerStopped)
	_, err := s.Call(t.Context(), tool("echo", nil))
	contains(t, failed(t, err, source.ServerStopped).Error(), "garra mcp start s")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	use(t, s, "echo", nil)
}

// Restarting leaves one process of a server, of which each is another.
func TestRestartsLeaveOneProcess(t *testing.T) {
	t.Parallel()
	needProc(t)
	r := newRig(t)
	s := r.only(misbehaving())
	seen := map[int]bool{s.Status().PID: true}
	for range 5 {
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen[s.Status().PID] = true
	}
	living := 0
	for pid := range seen {
		if alive(pid) {
			living++
		}
	}
	if len(seen) != 6 || living != 1 {
		t.Errorf("%d of %d run", living, len(seen))
	}
	if got := s.Status(); got.Restarts != 0 || got.State != source.Ready {
		t.Errorf("restarts by hand are counted: %+v", got)
	}
}

// A server keeps what its process knows from call to call and from client to
// client.
func TestStateIsKept(t *testing.T) {
	t.Parallel()
	s := newRig(t).only(misbehaving())
	use(t, s, "login", args{"user": "ada"})
	for i := range 100 {
		if got := use(t, s, "count", nil); got != strconv.Itoa(i+1) {
			t.Fatalf("%s", got)
		}
	}
	result, err := s.Call(t.Context(), from(&client{Name: "b"}, tool("whoami", nil)))
	if err != nil || textOf(t, result) != "ada" {
		t.Errorf("%s, %v", result, err)
	}
}

// What is kept of stderr is bounded, and doesn't hold the server up.
func TestFloodOfStandardError(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.Hooks.Stderr = nil })
	s := r.only(misbehaving("--stderr-flood", "-1"))
	eventually(t, "it wrote much", func() bool { return s.ring.last() > 100_000 })
	lines, more := s.Logs(0)
	size := 0
	for _, line := range lines {
		size += len(line.Text)
	}
	if size > ringBytes || len(lines) > ringBytes/lineOverhead {
		t.Errorf("%d bytes in %d lines", size, len(lines))
	}
	<-more
	use(t, s, "echo", nil)
}

// Its last words over runs: a failure quotes those of its own run.
func TestLastWordsAreOfTheirRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.only(misbehaving("--stderr-flood", "64"))
	eventually(t, "it spoke", func() bool { return s.ring.last() == 1 })
	r.apply(map[string]fields{"s": misbehaving("--exit-at-start").With("maxRestarts", 0)})
	contains(t, r.state("s", source.Parked).LastError.Message, "it wrote nothing to stderr")
	lines, _ := s.Logs(0)
	lines = slices.DeleteFunc(lines, func(line source.Line) bool { return line.Note })
	if len(lines) != 1 {
		t.Errorf("%d lines are kept", len(lines))
	}
}

// A command that can't be executed is no crash.
func TestCommandsThatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, command := range map[string]string{
		"is not there":                "no-such-command-anywhere",
		"no such file":                filepath.Join(dir, "nothing"),
		"is a folder":                 dir,
		"may not be executed":         write("plain", "#!/bin/sh\n", 0o600),
		"has no interpreter":          write("script", "#!/no/such/interpreter\n", 0o700),
		"is no program that runs":     write("noise", "\x7fELF but not really", 0o700),
		"is an empty file (no magic)": write("empty", "\x00\x00\x00\x00", 0o700),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.apply(map[string]fields{"s": {"command": command}})
			last := r.state("s", source.Failed).LastError
			contains(t, failed(t, last, source.ServerFailed).Error(), "s", filepath.Base(command))
			_, err := r.Server("s").Call(t.Context(), tool("echo", nil))
			f := failed(t, err, source.ServerFailed)
			if strings.Count(f.Error(), last.Message) != 1 || f.Fix != "" && strings.Count(f.Error(), f.Fix) != 1 {
				t.Errorf("said twice: %v", f)
			}
		})
	}
}

// A command that appears is found without anybody's help.
func TestCommandThatAppears(t *testing.T) {
	t.Parallel()
	path, arguments := misbehave.Command()
	r := newRig(t)
	command := filepath.Join(r.dir, "server")
	r.apply(map[string]fields{"s": {"command": command, "args": arguments}})
	r.state("s", source.Failed)
	if err := os.Symlink(path, command); err != nil {
		t.Fatal(err)
	}
	r.ready("s")
}
