// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/internal/place"
)

// processPatience bounds every wait for something that a process will do.
const processPatience = time.Minute

// A home is where a test's configuration and state are.
type home struct {
	t      *testing.T
	folder string
	garra  string // the program
}

// newHome makes one with a configuration of servers, which are fields of entries, and
// well-behaved ones without.
func newHome(t *testing.T, servers map[string]map[string]any) *home {
	t.Helper()
	folder, err := os.MkdirTemp("", "g") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	h := &home{t: t, folder: folder, garra: filepath.Join(folder, "garra")}
	path, args := misbehave.Command()
	for _, entry := range servers {
		if entry["command"] == nil {
			entry["command"], entry["args"] = path, args
		}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err == nil {
		err = os.Mkdir(h.config(), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(h.config(), "mcp.json"), text, 0o600)
	}
	self, selfErr := os.Executable()
	if err == nil && selfErr == nil {
		err = os.Symlink(self, h.garra)
	}
	if err != nil || selfErr != nil {
		t.Fatal(err, selfErr)
	}
	return h
}

func (h *home) config() string { return filepath.Join(h.folder, "c") }

// env is the environment of garra, with variables as NAME=VALUE added.
func (h *home) env(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.folder, "GARRAIA_CONFIG_DIR=" + h.config(),
		"GARRAIA_STATE_DIR=" + filepath.Join(h.folder, "s"),
	}, more...)
}

// run returns what the running gateway says of itself, ok when there is one.
func (h *home) run() (run runFile, ok bool) {
	places, err := place.Find(h.config(), func(name string) string {
		if name == "GARRAIA_STATE_DIR" {
			return filepath.Join(h.folder, "s")
		}
		return h.folder
	})
	if err != nil {
		h.t.Fatal(err)
	}
	run, err = readRunFile(places)
	return run, err == nil
}

// command returns a command of garra.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), h.garra, args...)
	cmd.Env = h.env()
	return cmd
}

// must runs a command of garra and returns what it prints.
func (h *home) must(args ...string) string {
	h.t.Helper()
	var diagnosis bytes.Buffer
	cmd := h.command(args...)
	cmd.Stderr = &diagnosis
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("garra %q: %v: %s", args, err, diagnosis.Bytes())
	}
	return string(out)
}

// A process is garra in the background.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex // guards log
	log []string   // lines of standard error
}

// start starts a command that was made.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, done: make(chan struct{})}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = write
	err = cmd.Start()
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process and those that it leaves standard error to
		defer read.Close()
		lines := bufio.NewScanner(read)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
		}
	}()
	go func() { // ends with the process; the cleanup waits for it
		defer close(p.done)
		_ = cmd.Wait() // its ProcessState is looked at
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // usually it has ended
		<-p.done
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%q said:\n%s", cmd.Args, strings.Join(p.log, "\n"))
		}
	})
	return p
}

// said reports whether a line of standard error holds a text.
func (p *process) said(text string) bool {
	return p.count(text) > 0
}

// count is how many lines of standard error hold a text.
func (p *process) count(text string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.log {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// code waits for the end and returns the exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(processPatience):
		p.t.Fatal("it doesn't end")
	}
	return p.cmd.ProcessState.ExitCode()
}

// serve starts a gateway that lets in everybody, and waits until it answers.
func (h *home) serve(args ...string) (p *process, url string) {
	h.t.Helper()
	p = start(h.t, h.command(append([]string{"serve", "--listen", "127.0.0.1:0", "--no-auth"}, args...)...))
	return p, h.serving(p)
}

// serving waits until a gateway that was started serves, and returns where.
func (h *home) serving(p *process) (url string) {
	h.t.Helper()
	within(h.t, "the gateway serves", func() bool { return p.said(`"message":"serving"`) })
	run, ok := h.run()
	if !ok {
		h.t.Fatal("there is no run.json")
	}
	url = "http://" + run.Address
	within(h.t, "the gateway is ready", func() bool {
		resp, err := http.Get(url + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return url
}

// within waits for a condition.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(processPatience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}

// A caller is an MCP client with a connection of its own.
type caller struct {
	t       *testing.T
	url     string // of the gateway
	session string
	http    *http.Client
}

func newCaller(t *testing.T, url string) *caller {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{t: t, url: url, http: &http.Client{Transport: transport, Timeout: processPatience}}
}

// connected is newCaller with a connection that is open.
func connected(t *testing.T, url string) *caller {
	t.Helper()
	c := newCaller(t, url)
	if status, body := c.get("/healthz"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	return c
}

func (c *caller) get(path string) (status int, body string) {
	c.t.Helper()
	resp, err := c.http.Get(c.url + path)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.must(resp)
}

// read reads an answer to its end.
func (c *caller) read(resp *http.Response) (status int, body string, err error) {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// must is read for an answer that must come whole.
func (c *caller) must(resp *http.Response) (status int, body string) {
	c.t.Helper()
	status, body, err := c.read(resp)
	if err != nil {
		c.t.Fatal(err)
	}
	return status, body
}

// send posts a message; headers come in pairs.
func (c *caller) send(message string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/mcp/one", strings.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return c.http.Do(req)
}

// post is send for a message that must get an answer.
func (c *caller) post(message string) *http.Response {
	c.t.Helper()
	resp, err := c.send(message)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// initialize makes the handshake, which must succeed.
func (c *caller) initialize() {
	c.t.Helper()
	if err := c.begin(); err != nil {
		c.t.Fatal(err)
	}
}

// begin makes the handshake of a new session.
func (c *caller) begin() error {
	c.session = ""
	resp, err := c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
		`{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}}}}`)
	if err != nil {
		return err
	}
	session := resp.Header.Get("Mcp-Session-Id")
	if status, body, err := c.read(resp); err != nil || status != http.StatusOK || session == "" {
		return fmt.Errorf("initialize: %d %s: %w", status, body, err)
	}
	c.session = session
	if resp, err = c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return err
	}
	if status, body, err := c.read(resp); err != nil || status != http.StatusAccepted {
		return fmt.Errorf("initialized: %d %s: %w", status, body, err)
	}
	return nil
}

// callOf is a call of a tool of misbehave.
func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`,
		tool, arguments)
}

// ask begins a call that asks its client something; next reads what comes, and id is
// that of the question.
func (c *caller) ask() (next func() string, id json.RawMessage) {
	c.t.Helper()
	lines := bufio.NewScanner(c.post(callOf("ask_sampling", `{"text":"who?"}`)).Body)
	next = func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
				return data
			}
		}
		return ""
	}
	var question struct {
		ID     json.RawMessage
		Method string
	}
	if data := next(); json.Unmarshal([]byte(data), &question) != nil || question.Method != "sampling/createMessage" {
		c.t.Fatalf("no question but %q", data)
	}
	return next, question.ID
}

// reply answers a question.
func (c *caller) reply(id json.RawMessage) *http.Response {
	c.t.Helper()
	return c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":`+
		`{"role":"assistant","model":"m","content":{"type":"text","text":"me"}}}`, id))
}

// serverPID is the process of the server one.
func serverPID(t *testing.T, h *home) (pid int) {
	t.Helper()
	if _, err := fmt.Sscan(h.must("mcp", "call", "one", "pid"), &pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// finishes answers the question of a call in flight on another connection, and makes sure
// that the call ends with what was answered.
func finishes(t *testing.T, other *caller, question json.RawMessage, next func() string) {
	t.Helper()
	if status, body := other.must(other.reply(question)); status != http.StatusAccepted {
		t.Errorf("the answer to a question: %d %s", status, body)
	}
	if data := next(); !strings.Contains(data, "me") {
		t.Errorf("the call in flight: %s", data)
	}
}
