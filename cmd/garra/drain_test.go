// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// one is a configuration with one server.
func one() map[string]map[string]any { return map[string]map[string]any{"one": {}} }

// last is what comes last.
func last(next func() string) (data string) {
	for more := next(); more != ""; more = next() {
		data = more
	}
	return data
}

// A gateway that is told to end takes no connection any more, finishes what it has
// begun, says to who is still connected that it goes, and ends in good order.
func TestDrainOfAGateway(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, url := h.serve()
	c, other, third := connected(t, url), connected(t, url), connected(t, url)
	c.initialize()
	next, question := c.ask()
	other.session, third.session = c.session, c.session
	p.signal(syscall.SIGTERM)
	within(t, "the address is closed", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	resp := third.post(callOf("echo", `{"text":"new"}`))
	if status, body := third.must(resp); !strings.Contains(body, "gateway.away") || !resp.Close {
		t.Errorf("a new call: %d %s, last on its connection: %v", status, body, resp.Close)
	}
	finishes(t, other, question, next)
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, there := h.run(); there {
		t.Error("run.json is left")
	}
}

// While calls in flight are waited for, /readyz says so, and a second signal ends that.
func TestASecondSignalEndsTheWait(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, url := h.serve("--drain-secs", "3600")
	c, other := connected(t, url), connected(t, url)
	c.initialize()
	next, _ := c.ask()
	p.signal(syscall.SIGTERM)
	within(t, "it has begun to drain", func() bool { return p.said(`"message":"stopping"`) })
	if status, body := other.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d %s", status, body)
	}
	p.signal(syscall.SIGTERM)
	if data := last(next); !strings.Contains(data, "gateway.ended") {
		t.Errorf("the call that was cut off: %s", data)
	}
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Without time to drain, nothing is waited for.
func TestNoDrain(t *testing.T) {
	t.Parallel()
	h := newHome(t, one())
	p, url := h.serve("--drain-secs", "0")
	c := newCaller(t, url)
	c.initialize()
	next, _ := c.ask()
	p.signal(syscall.SIGTERM)
	if data := last(next); !strings.Contains(data, "gateway.ended") {
		t.Errorf("the call that was cut off: %s", data)
	}
	if code := p.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
