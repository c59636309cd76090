// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToolsThatKeepState(t *testing.T) {
	c := start(t)
	for _, test := range []struct{ tool, args, want string }{
		{"count", `{}`, "1"},
		{"count", `{}`, "2"},
		{"whoami", `{}`, "nobody is logged in"},
		{"login", `{"user":"ada"}`, "welcome"},
		{"whoami", `{}`, "ada"},
		{"pid", `{}`, strconv.Itoa(c.cmd.Process.Pid)},
		{"alloc", `{"mb":1}`, "taken"},
		{"huge", `{"bytes":100000}`, strings.Repeat("x", 100_000)},
		{"big", `{"bytes":100000}`, strings.Repeat("b", 100_000)},
	} {
		if got := c.call(1, test.tool, test.args); got != test.want {
			t.Errorf("%s %s: %.100q, want %.100q", test.tool, test.args, got, test.want)
		}
	}
}

func TestWeirdResult(t *testing.T) {
	c := start(t)
	c.sendCall(1, "weird", `{}`)
	c.want(`{"jsonrpc":"2.0","id":1,"result":` + weird + `}`)
}

func TestCallsRunConcurrently(t *testing.T) {
	c := start(t)
	c.sendCall(1, "sleep", `{"ms":60000}`)
	c.ping()
	c.sendCall(2, "hang", `{}`)
	c.ping()
	if got := c.call(3, "sleep", `{"ms":1}`); got != "slept" {
		t.Errorf("got %q", got)
	}
}

func TestSerialSleepBlocks(t *testing.T) {
	c := start(t)
	c.sendCall(1, "sleep_serial", `{"ms":100}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if first := c.message(); string(first.ID) != "1" {
		t.Errorf("the first answer is to %s", first.ID)
	}
}

func TestCancelledSleepLeavesItsMarkAndNoAnswer(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "marker")
	c := start(t)
	c.sendCall(77, "sleep", fmt.Sprintf(`{"ms":60000,"marker":%q}`, marker))
	c.ping()
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77,"reason":"test"}}`)
	eventually(t, "the marker is written", func() bool {
		_, err := os.Stat(marker)
		return err == nil
	})
	c.ping()
}

func TestProgress(t *testing.T) {
	c := start(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
		`"params":{"name":"progress","arguments":{"n":2,"ms":1},"_meta":{"progressToken":7}}}`)
	for i := 1; i <= 2; i++ {
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress",`+
			`"params":{"progressToken":7,"progress":%d,"total":2,"message":"step %d"}}`, i, i))
	}
	if got := c.text(c.message()); got != "done" {
		t.Errorf("got %q", got)
	}
	if got := c.call(2, "progress", `{"n":3}`); got != "done" {
		t.Errorf("without a token: %q", got)
	}
}

func TestAsking(t *testing.T) {
	c := start(t)
	for tool, method := range map[string]string{
		"ask_roots":       "roots/list",
		"ask_sampling":    "sampling/createMessage",
		"ask_elicitation": "elicitation/create",
	} {
		asked := c.request(1, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{"text":"a?"}}`, tool))
		if asked.Method != method {
			t.Fatalf("%s asks %q, want %q", tool, asked.Method, method)
		}
		c.send(`{"jsonrpc":"2.0","id":%s,"result":{"from":"client"}}`, asked.ID)
		if got := c.text(c.message()); got != `{"from":"client"}` {
			t.Errorf("%s: %q", tool, got)
		}
		asked = c.request(2, "tools/call", fmt.Sprintf(`{"name":%q}`, tool))
		c.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}`, asked.ID)
		if got := c.text(c.message()); got != `the client's error: {"code":-1,"message":"no"}` {
			t.Errorf("%s: %q", tool, got)
		}
	}
}

func TestNotifications(t *testing.T) {
	c := start(t, "--grow-tools")
	for _, test := range []struct{ tool, args, want, answer string }{
		{
			"emit", `{"method":"notifications/x","params":{"z":1,"a":2.0}}`,
			`"method":"notifications/x","params":{"z":1,"a":2.0}`, "sent",
		},
		{"emit", `{"method":"notifications/y"}`, `"method":"notifications/y","params":{}`, "sent"},
		{
			"log", `{"level":"error","text":"oh"}`,
			`"method":"notifications/message","params":{"level":"error","logger":"misbehave","data":"oh"}`, "logged",
		},
		{"grow", `{}`, `"method":"notifications/tools/list_changed","params":{}`, "grown_1"},
	} {
		c.sendCall(1, test.tool, test.args)
		c.want(`{"jsonrpc":"2.0",` + test.want + `}`)
		if got := c.text(c.message()); got != test.answer {
			t.Errorf("%s: %q", test.tool, got)
		}
	}
	if names, _ := c.toolNames(""); !slices.Contains(names, "grown_1") {
		t.Errorf("the tool that grew is not in %q", names)
	}
	if got := c.call(2, "grown_1", `{}`); got != "grown_1" {
		t.Errorf("got %q", got)
	}
}

func TestStrayLines(t *testing.T) {
	c := start(t)
	for tool, begin := range map[string]string{
		"bad_json":       `{"jsonrpc":"2.0","id":,`,
		"truncated_line": `{"jsonrpc":"2.0","id":1,"result":{"conten` + "\n",
		"array_line":     `[`,
		"null_id_error":  `{"jsonrpc":"2.0","id":null,"error"`,
	} {
		c.sendCall(1, tool, `{}`)
		if got := c.line(); !strings.HasPrefix(got, begin) {
			t.Errorf("%s: %q, want %q", tool, got, begin)
		}
		if got := c.text(c.message()); got != "after a stray line" {
			t.Errorf("%s: then %q", tool, got)
		}
	}
}

func TestAnswerFlags(t *testing.T) {
	twice := start(t, "--answer-twice")
	if a, b := twice.call(1, "echo", `{"text":"x"}`), twice.message(); twice.text(b) != a {
		t.Errorf("%q, then %+v", a, b)
	}
	twice.ping() // which is answered once

	wrong := start(t, "--wrong-id")
	m := wrong.request(1, "tools/call", `{"name":"echo"}`)
	if diff := cmp.Diff(`"nobody-asked-with-this"`, string(m.ID)); diff != "" {
		t.Error(diff)
	}
	wrong.ping()
}

func TestNoNewlineFlood(t *testing.T) {
	c := start(t, "--no-newline-flood", "300000")
	c.sendCall(1, "count", `{}`)
	c.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if got, want := c.line(), strings.Repeat("x", 300_000)+pong+"\n"; got != want {
		t.Errorf("a line of %d bytes, want %d: %.100q", len(got), len(want), got)
	}
}

func TestEndingTools(t *testing.T) {
	for _, test := range []struct {
		tool, args string
		code       int
	}{
		{"crash", `{"code":7}`, 7},
		{"crash", `{}`, 0},
		{"kill_self", `{}`, -1},
	} {
		c := start(t)
		c.sendCall(1, test.tool, test.args)
		if got := c.exit(); got != test.code {
			t.Errorf("%s %s: exit code %d, want %d", test.tool, test.args, got, test.code)
		}
	}
}

func TestAnswerAndExit(t *testing.T) {
	c := start(t)
	if got := c.call(1, "answer_and_exit", `{"code":4}`); got != "bye" {
		t.Errorf("got %q", got)
	}
	if got := c.exit(); got != 4 {
		t.Errorf("exit code %d", got)
	}
}

func TestCloseStdin(t *testing.T) {
	c := start(t, "--exit-code", "5")
	if got := c.call(1, "close_stdin", `{}`); got != "closed" {
		t.Errorf("got %q", got)
	}
	if got := c.exit(); got != 5 { // the end of its input is its end
		t.Errorf("exit code %d", got)
	}
}

func TestAskFlood(t *testing.T) {
	c := start(t)
	c.sendCall(1, "ask_flood", `{"method":"roots/list","n":3}`)
	for i := range 3 {
		c.want(fmt.Sprintf(`{"jsonrpc":"2.0","id":"flood-%d","method":"roots/list","params":{}}`, i))
	}
	if got := c.text(c.message()); got != "asked" {
		t.Errorf("got %q", got)
	}
}

func TestCloseStdout(t *testing.T) {
	c := start(t)
	c.sendCall(1, "close_stdout", `{}`)
	for line := range c.lines {
		t.Errorf("a line: %q", line)
	}
	c.send(`no message`)
	eventually(t, "the server still reads", func() bool {
		return strings.Contains(c.stderr.String(), "no message")
	})
}
