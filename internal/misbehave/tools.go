// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A tool is one tool of the server.
type tool struct {
	name        string
	description string
	schema      string // its input schema as JSON, or "" for a tool without one
	serial      bool   // nothing else is read while it runs

	// run returns the result as JSON, or "" for no answer.
	run func(*call) (result string)
}

// tools returns the tools that are always there.
func tools() []*tool {
	return []*tool{
		{name: "echo", schema: object("text"), run: func(c *call) string { return textResult(c.text("text")) }},
		{name: "sleep", schema: object("ms", "marker", "text"), run: sleep},
		{name: "sleep_serial", schema: object("ms"), serial: true, run: sleep},
		{name: "hang", schema: object(), run: func(*call) string { return "" }},
		{name: "big", schema: object("bytes"), run: big},
		{name: "huge", schema: object("bytes"), serial: true, run: huge},
		{name: "crash", schema: object("code"), serial: true, run: crash},
		{name: "kill_self", schema: object(), serial: true, run: killSelf},
		{name: "answer_and_exit", schema: object("code"), serial: true, run: answerAndExit},
		{name: "half_answer", schema: object("code"), serial: true, run: halfAnswer},
		{name: "close_stdout", schema: object(), serial: true, run: closeStdout},
		{name: "close_stdin", schema: object(), serial: true, run: closeStdin},
		{name: "stop_self", schema: object(), serial: true, run: stopSelf},
		{name: "open_files", schema: object("n"), serial: true, run: openFiles},
		{name: "env", schema: object(), run: env},
		{name: "say_stderr", schema: object("text"), serial: true, run: sayStderr},
		{name: "backwards_env", schema: object("name"), run: envBackwards},
		{name: "pid", schema: object(), run: func(*call) string { return textResult(strconv.Itoa(os.Getpid())) }},
		{name: "alloc", schema: object("mb"), run: alloc},
		{name: "count", schema: object(), serial: true, run: count},
		{name: "login", schema: object("user"), serial: true, run: login},
		{name: "whoami", schema: object(), serial: true, run: whoami},
		{name: "progress", schema: object("n", "ms", "text"), run: progress},
		{name: "ask_roots", schema: object(), run: func(c *call) string { return c.ask("roots/list", `{}`) }},
		{name: "ask_sampling", schema: object("text"), run: askSampling},
		{name: "ask_elicitation", schema: object("text"), run: askElicitation},
		{name: "ask_and_cancel", schema: object(), serial: true, run: askAndCancel},
		{name: "ask_progress", schema: object(), run: askProgress},
		{name: "params", schema: object(), run: func(c *call) string { return textResult(string(c.params)) }},
		{name: "heard", schema: object(), serial: true, run: heard},
		{name: "ask_flood", schema: object("method", "n"), serial: true, run: askFlood},
		{name: "ask_twice", schema: object(), serial: true, run: askTwice},
		{name: "deep", schema: object("n"), run: deep},
		{name: "invalid_utf8", schema: object(), run: func(*call) string { return invalidUTF8 }},
		{name: "emit", schema: object("method", "params"), serial: true, run: emit},
		{name: "log", schema: object("level", "text"), serial: true, run: logMessage},
		{name: "say", schema: object("line"), run: say},
		{name: "weird", schema: object(), run: func(*call) string { return weird }},
		{name: "bad_json", schema: object(), run: strayLine(`{"jsonrpc":"2.0","id":,"result"}`)},
		{name: "truncated_line", schema: object(), run: strayLine(`{"jsonrpc":"2.0","id":1,"result":{"conten`)},
		{name: "array_line", schema: object(), run: strayLine(`[{"jsonrpc":"2.0","method":"notifications/x"},7]`)},
		{name: "null_id_error", schema: object(), run: strayLine(
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`)},
	}
}

// object returns the schema of an object whose properties may be anything.
func object(properties ...string) string {
	var list []string
	for _, name := range properties {
		list = append(list, encode(name)+`:{}`)
	}
	return `{"type":"object","properties":{` + strings.Join(list, ",") + `}}`
}

// textResult returns a result with one text.
func textResult(text string) string {
	return `{"content":[{"type":"text","text":` + encode(text) + `}]}`
}

// toolError returns a result that reports a failure of the tool.
func toolError(text string) string {
	return `{"content":[{"type":"text","text":` + encode(text) + `}],"isError":true}`
}

// weird holds what typed proxies lose: unknown members and content types,
// integers past 2^53, number texts, the order of keys, empty and zero values.
const weird = `{"zeta":1,"structuredContent":{"z":9007199254740993,"y":18446744073709551615,"x":1.0,` +
	`"w":1e2,"v":-0.0,"n":null,"a":"<&>\u2028"},"content":[{"type":"text","text":"",` +
	`"annotations":{"priority":0,"audience":["user"],"zz":true},"_meta":{"m":1.50}},` +
	`{"type":"hologram","data":"?"},{"type":"resource","resource":{"uri":"test://empty","text":""}}],` +
	`"_meta":{"vendor/key":{"b":2,"a":1}},"isError":false,"alpha":[]}`

// invalidUTF8 is a result that is no text in UTF-8, and so no JSON.
const invalidUTF8 = "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}"

func sleep(c *call) string {
	select {
	case <-time.After(time.Duration(c.number("ms")) * time.Millisecond):
		return textResult(cmp.Or(c.text("text"), "slept"))
	case <-c.ctx.Done():
		c.mark()
		return ""
	}
}

func big(c *call) string { return textResult(strings.Repeat("b", c.number("bytes"))) }

// huge is an answer that is never in memory as a whole.
func huge(c *call) string {
	c.out.huge(c.id, c.number("bytes"))
	return ""
}

// say writes a line, in which $id is that of the request, instead of an answer.
func say(c *call) string {
	c.out.send(strings.ReplaceAll(c.text("line"), "$id", string(c.id)))
	return ""
}

// sayStderr writes a line to standard error.
func sayStderr(c *call) string {
	fmt.Fprintln(os.Stderr, c.text("text"))
	return textResult("said")
}

func crash(c *call) string {
	exit(c.number("code"))
	return ""
}

func killSelf(c *call) string {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return toolError(err.Error())
	}
	forever() // the signal is on its way
	return ""
}

// halfAnswer is an end in the middle of a frame.
func halfAnswer(c *call) string {
	c.out.half(c.id, textResult("this is cut"))
	exit(c.number("code"))
	return ""
}

// openFiles keeps files open, as one does that forgets to close them.
func openFiles(c *call) string {
	for i := range c.number("n") {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return toolError(fmt.Sprintf("after %d: %v", i, err))
		}
		c.mu.Lock()
		c.files = append(c.files, f)
		c.mu.Unlock()
	}
	return textResult("open")
}

// deep returns arrays in arrays.
func deep(c *call) string {
	n := c.number("n")
	return `{"content":[],"structuredContent":{"deep":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
}

func closeStdout(*call) string {
	os.Stdout.Close()
	return ""
}

// answerAndExit leaves its answer in the pipe.
func answerAndExit(c *call) string {
	c.out.reply(c.id, textResult("bye"))
	exit(c.number("code"))
	return ""
}

// closeStdin is the end of the input as the server sees it, though not as its
// client does.
func closeStdin(*call) string {
	os.Stdin.Close()
	return textResult("closed")
}

func env(*call) string { return textResult(strings.Join(os.Environ(), "\n")) }

// envBackwards returns a variable in an encoding of its own, which nothing that takes
// secrets out of results knows.
func envBackwards(c *call) string {
	value := []byte(os.Getenv(c.text("name")))
	slices.Reverse(value)
	return textResult(string(value))
}

func alloc(c *call) string {
	c.keep(c.number("mb"))
	return textResult("taken")
}

func count(c *call) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.count++
	return textResult(strconv.Itoa(c.server.count))
}

func login(c *call) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user = c.text("user")
	return textResult("welcome")
}

func whoami(c *call) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.user == "" {
		return toolError("nobody is logged in")
	}
	return textResult(c.user)
}

func progress(c *call) string {
	n := c.number("n")
	for i := range n {
		if c.token != nil {
			c.notify("notifications/progress",
				fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d,"message":"step %d"}`, c.token, i+1, n, i+1))
		}
		select {
		case <-time.After(time.Duration(c.number("ms")) * time.Millisecond):
		case <-c.ctx.Done():
			c.mark()
			return ""
		}
	}
	return textResult(cmp.Or(c.text("text"), "done"))
}

func askSampling(c *call) string {
	return c.ask("sampling/createMessage", fmt.Sprintf(
		`{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"maxTokens":100}`, encode(c.text("text"))))
}

func askElicitation(c *call) string {
	return c.ask("elicitation/create", fmt.Sprintf(
		`{"message":%s,"requestedSchema":{"type":"object","properties":{"answer":{"type":"string"}}}}`,
		encode(c.text("text"))))
}

// askAndCancel asks, and doesn't want to know any more.
func askAndCancel(c *call) string {
	c.out.send(`{"jsonrpc":"2.0","id":"regretted","method":"elicitation/create","params":{"message":"?"}}`)
	c.notify("notifications/cancelled", `{"requestId":"regretted","reason":"never mind"}`)
	return textResult("taken back")
}

// askProgress asks, and answers with the first progress that the client reports.
func askProgress(c *call) string {
	progress := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.waiting["asked"] = progress
	c.mu.Unlock()
	c.out.send(`{"jsonrpc":"2.0","id":"slow","method":"sampling/createMessage","params":` +
		`{"messages":[],"maxTokens":1,"_meta":{"progressToken":"asked"}}}`)
	select {
	case params := <-progress:
		return textResult(string(params))
	case <-c.ctx.Done():
		return ""
	}
}

func heard(c *call) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return textResult(strings.Join(c.server.heard, " "))
}

// askFlood sends requests and waits for none of the answers.
func askFlood(c *call) string {
	for i := range c.number("n") {
		method := encode(c.text("method"))
		c.out.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"flood-%d","method":%s,"params":{}}`, i, method))
	}
	return textResult("asked")
}

// askTwice asks two things under one id.
func askTwice(c *call) string {
	for range 2 {
		c.out.send(`{"jsonrpc":"2.0","id":"twice","method":"elicitation/create","params":{"message":"?"}}`)
	}
	return textResult("asked")
}

func emit(c *call) string {
	params := string(c.args["params"])
	if params == "" {
		params = `{}`
	}
	c.notify(c.text("method"), params)
	return textResult("sent")
}

func logMessage(c *call) string {
	c.notify("notifications/message", fmt.Sprintf(`{"level":%s,"logger":"misbehave","data":%s}`,
		encode(c.text("level")), encode(c.text("text"))))
	return textResult("logged")
}

// strayLine returns a tool that writes a line of its own before it answers.
func strayLine(line string) func(*call) string {
	return func(c *call) string {
		c.out.send(line)
		return textResult("after a stray line")
	}
}

// notify sends a notification.
func (s *server) notify(method, params string) {
	s.out.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%s,"params":%s}`, encode(method), json.RawMessage(params)))
}
