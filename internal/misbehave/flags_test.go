// SPDX-License-Identifier: Apache-2.0

//go:build unix

package misbehave

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`

func TestOutputFlags(t *testing.T) {
	for _, test := range []struct {
		flags []string
		want  string // up to the answer to a ping
	}{
		{[]string{"--banner", "Server started"}, "Server started\n" + pong + "\n"},
		{[]string{"--bom"}, "\xef\xbb\xbf" + pong + "\n"},
		{[]string{"--bom", "--banner", "hi"}, "\xef\xbb\xbfhi\n" + pong + "\n"},
		{[]string{"--noise-before-reply"}, "INFO: about to answer {not json}\n" + pong + "\n"},
		{[]string{"--scalar-line"}, "42\n" + pong + "\n"},
		{[]string{"--crlf"}, pong + " \t\r\n"},
	} {
		t.Run(strings.Join(test.flags, " "), func(t *testing.T) {
			c := start(t, test.flags...)
			if test.flags[0] == "--bom" && len(test.flags) == 1 {
				c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
				c.want(strings.TrimSuffix(test.want, "\n"))
				return
			}
			if got := c.pinged(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestCRLFEndsInAnEmptyLine(t *testing.T) {
	c := start(t, "--crlf")
	c.pinged()
	c.want("\r")
}

func TestHandshakeFlags(t *testing.T) {
	for _, test := range []struct {
		flags []string
		want  string // somewhere in the answer
	}{
		{[]string{"--protocol", "1999-01-01"}, `"protocolVersion":"1999-01-01"`},
		{[]string{"--caps", `{"x":{"z":1,"a":2}}`}, `"capabilities":{"x":{"z":1,"a":2}},`},
		{[]string{"--instructions", "be <nice>"}, `"instructions":"be <nice>"`},
	} {
		c := start(t, test.flags...)
		c.send(hello)
		if got := c.line(); !strings.Contains(got, test.want) {
			t.Errorf("%q: got %s", test.flags, got)
		}
	}
}

func TestNeverInit(t *testing.T) {
	c := start(t, "--never-init")
	c.send(hello)
	c.ping() // and no answer before this one
}

func TestSlowInit(t *testing.T) {
	c := start(t, "--slow-init", "200ms")
	began := time.Now()
	c.send(hello)
	c.line()
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("answered after %v", took)
	}
}

func TestUnknownMethods(t *testing.T) {
	const discover = `{"jsonrpc":"2.0","id":9,"method":"server/discover"}`
	silent := start(t, "--silent-on-unknown")
	silent.send(discover)
	silent.ping()

	exits := start(t, "--exit-on-unknown")
	exits.send(`{"jsonrpc":"2.0","method":"notifications/unknown"}`)
	exits.ping()
	exits.send(discover)
	if got := exits.exit(); got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
}

func TestExitFlags(t *testing.T) {
	for _, test := range []struct {
		flags  []string
		code   int
		stderr string
	}{
		{[]string{"--exit-at-start"}, 0, ""},
		{[]string{"--exit-at-start", "--exit-code", "78"}, 78, ""},
		{[]string{"--exit-after", "50ms", "--exit-code", "3"}, 3, ""},
		{[]string{"--traceback"}, 1, "ModuleNotFoundError"},
	} {
		c := start(t, test.flags...)
		if got := c.exit(); got != test.code {
			t.Errorf("%q: exit code %d, want %d", test.flags, got, test.code)
		}
		if got := c.stderr.String(); !strings.Contains(got, test.stderr) || test.stderr == "" && got != "" {
			t.Errorf("%q: stderr %q, want %q", test.flags, got, test.stderr)
		}
	}
}

func TestEndOfInput(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	c := start(t, "--eof-marker", marker, "--exit-code", "4")
	c.ping()
	if _, err := os.Stat(marker); err == nil {
		t.Error("the marker is there before the end of the input")
	}
	c.stdin.Close()
	if got := c.exit(); got != 4 {
		t.Errorf("exit code %d, want 4", got)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error(err)
	}
}

func TestIgnoreEOF(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	c := start(t, "--ignore-eof", "--eof-marker", marker)
	c.stdin.Close()
	eventually(t, "the server notices the end of its input", func() bool {
		_, err := os.Stat(marker)
		return err == nil
	})
	if !alive(c.cmd.Process.Pid) {
		t.Error("the server is gone")
	}
}

func TestIgnoreTerm(t *testing.T) {
	c := start(t, "--ignore-term")
	c.ping()
	for range 3 {
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.ping()
	}
	c = start(t)
	c.ping()
	c.cmd.Process.Signal(syscall.SIGTERM)
	if got := c.exit(); got != -1 {
		t.Errorf("without the flag: exit code %d, want a signal", got)
	}
}

func TestStderrFlags(t *testing.T) {
	c := start(t, "--stderr-flood", "300000", "--stderr-before-reply", "1000")
	c.ping()
	c.ping()
	eventually(t, "302000 bytes on stderr", func() bool { return len(c.stderr.String()) == 302_000 })

	endless := start(t, "--stderr-flood", "-1")
	endless.ping()
	eventually(t, "a megabyte on stderr", func() bool { return len(endless.stderr.String()) > 1<<20 })
	endless.ping()
}

func TestEnvDump(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	c := start(t, "--env-dump", file)
	c.ping()
	if got, err := os.ReadFile(file); err != nil || string(got) != "CANARY=yellow\x00" {
		t.Errorf("got %q, %v", got, err)
	}
	if got := c.call(1, "env", `{}`); got != "CANARY=yellow" {
		t.Errorf("tool env: %q", got)
	}
}

func TestAlloc(t *testing.T) {
	c := start(t, "--alloc", "64")
	c.ping()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(after, &kib); err != nil || kib < 64<<10 || kib > 256<<10 {
		t.Errorf("resident set: %d KiB, %v", kib, err)
	}
}

func TestStopReading(t *testing.T) {
	c := start(t, "--stop-reading-stdin")
	c.send(hello)
	c.line()
	c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	select {
	case line := <-c.lines:
		t.Errorf("an answer: %q", line)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestSpinNeverReads(t *testing.T) {
	c := start(t, "--spin")
	c.send(hello)
	select {
	case line := <-c.lines:
		t.Errorf("an answer: %q", line)
	case <-time.After(100 * time.Millisecond):
	}
}

func TestWorkers(t *testing.T) {
	for _, flag := range []string{"--fork-worker", "--setsid-worker"} {
		t.Run(flag, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			c := start(t, flag, file)
			c.ping()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			defer syscall.Kill(pid, syscall.SIGKILL)
			group, err := syscall.Getpgid(pid)
			if err != nil {
				t.Fatal(err)
			}
			if own := group == pid; own != (flag == "--setsid-worker") {
				t.Errorf("process %d in group %d", pid, group)
			}
			c.cmd.Process.Kill()
			c.cmd.Process.Wait()
			if !alive(pid) {
				t.Error("the worker ended with the server")
			}
		})
	}
}

// alive reports whether a process exists.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
