// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package servers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/envbuild"
)

const (
	answerWithin = 60 * time.Second // a cold start of Node.js on a busy machine
	silentFor    = 10 * time.Second
)

// TestPinnedServers starts each server directly, with the environment that
// garra gives it, and checks what the table says.
func TestPinnedServers(t *testing.T) {
	folder, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Pinned(folder, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range all {
		t.Run(server.Name, func(t *testing.T) {
			conn := start(t, server)
			if server.Silent {
				if answer, err := conn.initialize(silentFor); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %s, %v; want no answer", answer, err)
				}
				return
			}
			if answer, err := conn.initialize(answerWithin); err != nil {
				t.Fatalf("initialize: %s, %v", answer, err)
			}
			checkTools(t, conn, server)
			checkCall(t, conn, server)
		})
	}
}

func checkTools(t *testing.T, conn *conn, server Server) {
	t.Helper()
	answer, err := conn.ask("tools/list", `{}`, answerWithin)
	var list struct{ Tools []struct{ Name string } }
	if err != nil || json.Unmarshal(answer, &list) != nil || len(list.Tools) != server.Tools {
		t.Fatalf("%d tools, %v; want %d", len(list.Tools), err, server.Tools)
	}
}

// checkCall asks twice, except where a call changes what the next one sees.
func checkCall(t *testing.T, conn *conn, server Server) {
	t.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":%s}`, server.Tool, server.Arguments)
	first, err := conn.ask("tools/call", params, answerWithin)
	if err != nil {
		t.Fatalf("%s: %s, %v", server.Tool, first, err)
	}
	if strings.Contains(string(first), `"isError":true`) {
		t.Errorf("%s failed: %s", server.Tool, first)
	}
	if server.Name == "sequential-thinking" {
		return
	}
	second, err := conn.ask("tools/call", params, answerWithin)
	if err != nil || string(first) != string(second) {
		t.Errorf("%s answers\n%s\nand then\n%s, %v", server.Tool, first, second, err)
	}
}

// conn speaks JSON-RPC, one message a line, with a server's process.
type conn struct {
	in      io.Writer
	answers chan answer
	calls   int
}

// answer is a response as it came.
type answer struct {
	ID     int
	Method string
	Result json.RawMessage
	Error  json.RawMessage
}

// start runs a server until the end of the test.
func start(t *testing.T, server Server) *conn {
	t.Helper()
	entry := envbuild.Entry{
		Server: server.Name, Command: server.Command, Args: server.Args, Env: server.Env, Cwd: t.TempDir(),
	}
	spec, err := envbuild.Build(t.Context(), entry, envbuild.SystemHost(), nil)
	if err != nil {
		t.Fatalf("%v\n(make servers installs them)", err)
	}
	cmd := exec.Cmd{Path: spec.Path, Args: spec.Args, Env: spec.Environ(), Dir: spec.Dir, Stderr: t.Output()}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &conn{in: in, answers: make(chan answer, 64)}
	go c.read(out) // ends with the server's output; the cleanup waits for it
	t.Cleanup(func() {
		in.Close()
		timer := time.AfterFunc(answerWithin, func() { cmd.Process.Kill() })
		defer timer.Stop()
		for range c.answers {
			continue
		}
		if err := cmd.Wait(); err != nil {
			t.Logf("%s at the end of its input: %v", server.Name, err)
		}
	})
	return c
}

// read passes responses on and drops everything else.
func (c *conn) read(out io.Reader) {
	defer close(c.answers)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var a answer
		if json.Unmarshal(line, &a) == nil && a.Method == "" {
			c.answers <- a
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) initialize(within time.Duration) (json.RawMessage, error) {
	result, err := c.ask("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rig","version":"1"}}`, within)
	if err == nil {
		_, err = io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return result, err
}

// ask sends a request and waits for its response.
func (c *conn) ask(method, params string, within time.Duration) (json.RawMessage, error) {
	c.calls++
	_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.calls, method, params)
	if err != nil {
		return nil, err
	}
	deadline := time.After(within)
	for {
		select {
		case a, open := <-c.answers:
			switch {
			case !open:
				return nil, io.ErrUnexpectedEOF
			case a.ID == c.calls && a.Error != nil:
				return a.Error, errors.New("the server answers with an error")
			case a.ID == c.calls:
				return a.Result, nil
			}
		case <-deadline:
			return nil, context.DeadlineExceeded
		}
	}
}
