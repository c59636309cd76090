// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
)

// modernCall is a call of the stateless era, and the headers that go with it.
func modernCall(text string) (body string, headers []string) {
	const revision = "2026-07-28"
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",`+
		`"arguments":{"text":%q},"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, text, revision)
	return body, []string{"Mcp-Protocol-Version", revision, "Mcp-Method", "tools/call", "Mcp-Name", "echo"}
}

// statelessly calls a tool without a session and says what is wrong with the answer.
func (c *caller) statelessly(text string) error {
	body, headers := modernCall(text)
	resp, err := c.send(body, headers...)
	if err != nil {
		return err
	}
	status, answer, err := c.read(resp)
	if err == nil && (status != http.StatusOK || !strings.Contains(answer, `"text":"`+text+`"`)) {
		err = fmt.Errorf("%d %s", status, answer)
	}
	return err
}

// inSession calls a tool in a session, and says whether that was gone.
func (c *caller) inSession() (gone bool, err error) {
	resp, err := c.send(callOf("echo", `{"text":"mine"}`))
	if err != nil {
		return false, err
	}
	status, body, err := c.read(resp)
	switch {
	case err != nil:
		return false, err
	case status == http.StatusNotFound:
		return true, nil
	case status != http.StatusOK || !strings.Contains(body, "mine"):
		return false, fmt.Errorf("%d %s", status, body)
	}
	return false, nil
}

// A load is clients that call without a pause, until it is stopped.
type load struct {
	t       *testing.T
	stop    chan struct{}
	running sync.WaitGroup
	calls   atomic.Int64 // that were answered
	begun   atomic.Int64 // sessions
}

// client runs a client of the load; call is called again and again.
func (l *load) client(name string, call func() error) {
	l.running.Go(func() { // ends with stop
		for {
			select {
			case <-l.stop:
				return
			default:
			}
			if err := call(); err != nil {
				l.t.Errorf("%s: %v", name, err)
			}
			l.calls.Add(1)
		}
	})
}

// newLoad starts clients that connect for each call, one that keeps its connection, and
// one that has a session.
func newLoad(t *testing.T, url string) *load {
	l := &load{t: t, stop: make(chan struct{})}
	fresh, keeping, session := newCaller(t, url), newCaller(t, url), newCaller(t, url)
	fresh.http.Transport.(*http.Transport).DisableKeepAlives = true
	l.client("a client that connects each time", func() error { return fresh.statelessly("fresh") })
	l.client("a client that keeps its connection", func() error { return keeping.statelessly("kept") })
	session.initialize()
	l.client("a client with a session", func() error {
		gone, err := session.inSession()
		if gone {
			l.begun.Add(1)
			err = session.begin()
		}
		return err
	})
	return l
}

// Ten gateways take each other's place, and no client notices: none is refused, none gets
// an error, and those with a session are told once that it is gone.
func TestTenHandovers(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, url := h.serve()
	l := newLoad(t, url)
	const handovers = 10
	for i := range handovers {
		called, begun := l.calls.Load(), l.begun.Load()
		next := start(t, h.command("serve", "--replace", "--no-auth"))
		if at := h.serving(next); at != url {
			t.Fatalf("number %d serves at %s, not at %s", i+1, at, url)
		}
		if code := p.code(); code != 0 {
			t.Errorf("number %d ended with %d", i, code)
		}
		if run, _ := h.run(); run.PID != next.cmd.Process.Pid {
			t.Errorf("run.json has process %d, not %d", run.PID, next.cmd.Process.Pid)
		}
		within(t, "clients are served", func() bool { return l.calls.Load() > called+10 && l.begun.Load() > begun })
		if listed := h.must("mcp", "list"); !strings.HasPrefix(listed, "one\tready\t") {
			t.Errorf("commands find %s", listed)
		}
		p = next
	}
	close(l.stop)
	l.running.Wait()
	if n := l.begun.Load(); n != handovers {
		t.Errorf("%d sessions were begun again by %d handovers", n, handovers)
	}
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("the last one ended with %d", code)
	}
	if _, there := h.run(); there {
		t.Error("run.json is left")
	}
}

// A call that runs when the place is taken ends where it began.
func TestHandoverLeavesCallsInFlight(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, url := h.serve()
	c, other := connected(t, url), connected(t, url)
	c.initialize()
	next, question := c.ask()
	other.session = c.session
	successor := start(t, h.command("serve", "--replace", "--no-auth"))
	h.serving(successor)
	finishes(t, other, question, next)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// SIGUSR2 has the gateway start its successor itself.
func TestSuccessionBySignal(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, url := h.serve()
	first, _ := h.run()
	p.signal(syscall.SIGUSR2)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	run, ok := h.run()
	if !ok || run.PID == first.PID || "http://"+run.Address != url {
		t.Fatalf("the successor is %+v", run)
	}
	if err := newCaller(t, url).statelessly("there"); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(run.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	within(t, "it ends", func() bool {
		_, there := h.run()
		return !there
	})
}

// stuckWith is a configuration with a server that doesn't start while a file is there.
func stuckWith(file string, seconds int) map[string]map[string]any {
	script := fmt.Sprintf(`test -e %q && exec sleep 4242; exec "$0" "$@"`, file)
	path, args := misbehave.Command()
	return map[string]map[string]any{"one": {
		"command": "sh", "args": append([]string{"-c", script, path}, args...), "timeoutSecs": seconds,
	}}
}

// Whatever becomes of a successor that does not come up, the gateway goes on.
func TestASuccessorThatDoesNotComeUp(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	stuck := filepath.Join(folder, "stuck")
	h := newHome(t, stuckWith(stuck, 600))
	p, url := h.serve()
	before, _ := h.run()

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--listen", "127.0.0.1:1"}, "leave out --listen"},
		{[]string{"--tls-cert", "nowhere", "--tls-key", "nowhere"}, "the successor does the opposite"},
	} {
		refused := start(t, h.command(append([]string{"serve", "--replace"}, c.args...)...))
		if code := refused.code(); code != 1 || !refused.said(c.says) {
			t.Errorf("%q: exit code %d", c.args, code)
		}
	}

	if err := os.WriteFile(stuck, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	killed := start(t, h.command("serve", "--replace", "--no-auth"))
	within(t, "the successor starts", func() bool { return killed.said(`"state":"starting"`) })
	second := start(t, h.command("serve", "--replace", "--no-auth"))
	if code := second.code(); code != 1 || !second.said("another successor is starting") {
		t.Errorf("a second successor: exit code %d", code)
	}
	killed.signal(syscall.SIGKILL)
	within(t, "the gateway knows", func() bool { return p.said("did not come up") })
	if after, ok := h.run(); !ok || after.PID != before.PID {
		t.Errorf("run.json says %+v, before %+v", after, before)
	}
	if err := newCaller(t, url).statelessly("still"); err != nil {
		t.Error(err)
	}
	if listed := h.must("mcp", "list"); !strings.HasPrefix(listed, "one\tready\t") {
		t.Errorf("commands find %s", listed)
	}

	// And it hands over to the next one.
	if err := os.Remove(stuck); err != nil {
		t.Fatal(err)
	}
	next := start(t, h.command("serve", "--replace", "--no-auth"))
	h.serving(next)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A gateway that is told to end while a successor starts ends, and the successor with it;
// one that is killed leaves everything to it.
func TestAGatewayThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal  syscall.Signal
		follows bool
	}{{syscall.SIGTERM, false}, {syscall.SIGKILL, true}} {
		stuck := filepath.Join(t.TempDir(), "stuck")
		h := newHome(t, stuckWith(stuck, 3))
		p, url := h.serve()
		if err := os.WriteFile(stuck, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		next := start(t, h.command("serve", "--replace", "--no-auth"))
		within(t, "the successor starts", func() bool { return next.said(`"state":"starting"`) })
		p.signal(c.signal)
		if !c.follows {
			if code := next.code(); code != 1 || !next.said("it was told to end meanwhile") {
				t.Errorf("exit code %d", code)
			}
			continue
		}
		p.code()
		if at := h.serving(next); at != url {
			t.Errorf("it serves at %s, not at %s", at, url)
		}
	}
}

// With nothing to replace, --replace starts a gateway.
func TestReplaceNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, _ := h.serve("--replace")
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A bridge whose gateway is replaced leads to the next one, and its client doesn't notice.
func TestABridgeFollows(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, _ := h.serve()
	bridge := h.command("stdio", "--server", "one")
	in, err := bridge.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := bridge.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, bridge)
	answers := json.NewDecoder(out)
	ask := func(message string) (answer struct {
		ID     int
		Result json.RawMessage
		Error  json.RawMessage
	},
	) {
		t.Helper()
		if _, err := fmt.Fprintln(in, message); err != nil {
			t.Fatal(err)
		}
		for answer.ID == 0 { // list_changed may come between
			if err := answers.Decode(&answer); err != nil {
				t.Fatal(err)
			}
		}
		return answer
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	next := start(t, h.command("serve", "--replace", "--no-auth"))
	h.serving(next)
	p.code()
	within(t, "the bridge has noticed", func() bool { return b.said("the gateway is away") })
	deadline := time.Now().Add(processPatience)
	for {
		answer := ask(callOf("echo", `{"text":"mine"}`))
		if strings.Contains(string(answer.Result), `"mine"`) {
			return
		}
		if !strings.Contains(string(answer.Result), "gateway.away") || time.Now().After(deadline) {
			t.Fatalf("%s %s", answer.Result, answer.Error)
		}
	}
}
