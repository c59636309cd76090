// SPDX-License-Identifier: Apache-2.0

//go:build unix

package misbehave

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStorms(t *testing.T) {
	const params = `{"progressToken":9,"progress":1}`
	c := start(t, "--storm", "notifications/progress", "--storm-params", params, "--ask-storm", "roots/list")
	c.send(hello)
	c.line() // the answer
	for n := range 1000 {
		c.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":` + params + `}`)
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":"storm-%d","method":"roots/list","params":{}}`, n))
	}
}

func TestAskTwice(t *testing.T) {
	c := start(t)
	c.sendCall(1, "ask_twice", `{}`)
	for range 2 {
		if m := c.message(); string(m.ID) != `"twice"` {
			t.Errorf("%+v", m)
		}
	}
	c.message() // the answer
}

func TestDrip(t *testing.T) {
	c := start(t, "--drip", "1ms")
	began := time.Now()
	c.ping()
	if took := time.Since(began); took < time.Duration(len(pong))*time.Millisecond {
		t.Errorf("%d bytes came in %v", len(pong), took)
	}
}

func TestStderrEndless(t *testing.T) {
	c := start(t, "--stderr-endless")
	c.ping()
	eventually(t, "a megabyte on stderr", func() bool { return len(c.stderr.String()) > 1<<20 })
	if strings.Contains(c.stderr.String(), "\n") {
		t.Error("a line end")
	}
}

func TestNoteStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "starts")
	want := ""
	for range 2 {
		c := start(t, "--note-start", file, "--exit-at-start")
		want += fmt.Sprintln(c.cmd.Process.Pid)
		c.exit()
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestZombies(t *testing.T) {
	c := start(t, "--zombies", "3")
	c.ping()
	eventually(t, "three zombies", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.cmd.Process.Pid))
		if err != nil {
			t.Skip("needs /proc: ", err)
		}
		found := 0
		for pid := range strings.FieldsSeq(string(text)) {
			stat, _ := os.ReadFile("/proc/" + pid + "/stat") // one that ended between is none
			if strings.Contains(string(stat), ") Z ") {
				found++
			}
		}
		return found == 3
	})
}

func TestLeak(t *testing.T) {
	c := start(t, "--leak", "1")
	resident := func() (pages int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", c.cmd.Process.Pid))
		if err != nil {
			t.Skip("needs /proc: ", err)
		}
		_, _ = fmt.Sscan(string(text), new(int), &pages) // 0 when it can't be read
		return pages
	}
	before := resident()
	eventually(t, "16 MB more", func() bool { return (resident()-before)*os.Getpagesize() > 16<<20 })
}

func TestHalfAnswer(t *testing.T) {
	c := start(t)
	c.sendCall(1, "half_answer", `{"code":5}`)
	if got := c.line(); strings.HasSuffix(got, "\n") || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result"`) {
		t.Errorf("%q", got)
	}
	if got := c.exit(); got != 5 {
		t.Errorf("exit code %d", got)
	}
}

func TestStopSelf(t *testing.T) {
	c := start(t)
	if got := c.call(1, "stop_self", `{}`); got != "stopping" {
		t.Errorf("%q", got)
	}
	var status syscall.WaitStatus
	pid := c.cmd.Process.Pid
	if _, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Errorf("%v, %v", status, err)
	}
}

func TestOpenFiles(t *testing.T) {
	c := start(t)
	if got := c.call(1, "open_files", `{"n":10}`); got != "open" {
		t.Errorf("%q", got)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	if len(files) < 13 {
		t.Errorf("%d descriptors", len(files))
	}
}

func TestResultsThatAreHardToRead(t *testing.T) {
	c := start(t)
	c.sendCall(1, "deep", `{"n":3}`)
	c.want(`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"deep":[[[]]]}}}`)
	c.sendCall(2, "invalid_utf8", `{}`)
	c.want("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":" + invalidUTF8 + "}")
}
