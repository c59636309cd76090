// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// A client speaks to one server, which is a process, line by line.
type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string // of stdout; closed at its end
	stderr syncBuffer
}

// start starts a server and kills it when the test ends.
func start(t *testing.T, flags ...string) *client {
	t.Helper()
	path, args := Command(flags...)
	c := &client{t: t, cmd: exec.CommandContext(t.Context(), path, args...), lines: make(chan string, 1000)}
	c.cmd.Env = []string{"CANARY=yellow"}
	c.cmd.WaitDelay = time.Second // workers hold stderr
	c.cmd.Stderr = &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the server's output; the test's end kills the server
		defer close(c.lines)
		for r := bufio.NewReader(stdout); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				c.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// send sends a line.
func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.stdin, format+"\n", args...); err != nil {
		c.t.Fatalf("writing to the server: %v", err)
	}
}

// line returns the next line, its end included.
func (c *client) line() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the server's output has ended; stderr: %s", c.stderr.String())
		}
		return line
	case <-time.After(10 * time.Second):
		c.t.Fatal("no line in time")
	}
	return ""
}

// want fails unless the next line is this one.
func (c *client) want(line string) {
	c.t.Helper()
	if got := c.line(); got != line+"\n" {
		c.t.Errorf("got  %.300q\nwant %.300q", got, line+"\n")
	}
}

// request sends a request and returns the parsed line that comes next.
func (c *client) request(id int, method, params string) message {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	return c.message()
}

// message returns the next line, parsed.
func (c *client) message() message {
	c.t.Helper()
	var m message
	line := c.line()
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		c.t.Fatalf("%.300q: %v", line, err)
	}
	return m
}

// call calls a tool and returns the text of its answer.
func (c *client) call(id int, tool, args string) string {
	c.t.Helper()
	c.sendCall(id, tool, args)
	m := c.message()
	if string(m.ID) != fmt.Sprint(id) {
		c.t.Errorf("%s: an answer to %s, want %d", tool, m.ID, id)
	}
	return c.text(m)
}

// sendCall calls a tool.
func (c *client) sendCall(id int, tool, args string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// text returns the first text of a result.
func (c *client) text(m message) string {
	c.t.Helper()
	var result struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(m.Result, &result); err != nil || len(result.Content) == 0 {
		c.t.Fatalf("no text in %+v: %v", m, err)
	}
	return result.Content[0].Text
}

// ping makes sure that the server has handled all that was sent before.
func (c *client) ping() {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	c.want(pong)
}

// exit waits for the server's end and returns its exit code, -1 for a signal.
func (c *client) exit() int {
	c.t.Helper()
	for range c.lines { // Wait would close the pipe under the reader
	}
	err := c.cmd.Wait()
	if c.cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// A syncBuffer is a bytes.Buffer that can be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// toolNames asks for one page of the tool list.
func (c *client) toolNames(cursor string) (names []string, next string) {
	c.t.Helper()
	params := `{}`
	if cursor != "" {
		params = fmt.Sprintf(`{"cursor":%q}`, cursor)
	}
	m := c.request(1, "tools/list", params)
	var result struct {
		Tools      []struct{ Name string }
		NextCursor string
	}
	if err := json.Unmarshal(m.Result, &result); err != nil {
		c.t.Fatalf("%s: %v", m.Result, err)
	}
	for _, t := range result.Tools {
		names = append(names, t.Name)
	}
	return names, result.NextCursor
}

const pong = `{"jsonrpc":"2.0","id":"p","result":{}}`

// pinged sends a ping and returns the lines up to its answer, and with it.
func (c *client) pinged() string {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	var lines strings.Builder
	for {
		line := c.line()
		lines.WriteString(line)
		if strings.HasPrefix(line, pong) {
			return lines.String()
		}
	}
}
