// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"syscall"
	"testing"
)

// noisy is a server that writes everywhere and everything.
func noisy() entry {
	return misbehaving("--banner", "Server started", "--bom", "--noise-before-reply", "--scalar-line", "--crlf",
		"--stderr-flood", "100000", "--stderr-before-reply", "1000")
}

// TestStdioIsPure reads every line that `garra stdio` writes, as a gateway of
// its own and as a bridge: each is a message.
func TestStdioIsPure(t *testing.T) {
	t.Parallel()
	for _, bridged := range []bool{false, true} {
		name := map[bool]string{false: "private", true: "bridge"}[bridged]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.configure(map[string]entry{
				"noisy": noisy(), "broken": misbehaving("--traceback"), "unknown": {"comand": "x"},
			})
			if bridged {
				h.serve().ready("noisy")
			}
			c, p := h.stdio("--log-level", "debug")
			for range 3 {
				if text := c.text("noisy__echo", `{"text":"heard"}`); text != "heard" {
					t.Errorf("echo says %q", text)
				}
			}
			for _, tool := range []string{"bad_json", "truncated_line", "array_line", "null_id_error"} {
				c.call("noisy__"+tool, `{}`)
			}
			c.request("e2e/unknown", `{}`)
			if err := c.hangUp(); err != nil {
				t.Errorf("at the end of its input: %v", err)
			}
			messages, noise := p.heard()
			if len(noise) > 0 {
				t.Errorf("standard output holds %q", noise)
			}
			if messages < 9 {
				t.Errorf("only %d messages", messages)
			}
			if !bridged && !strings.Contains(p.stderr.String(), "ModuleNotFoundError") {
				t.Errorf("the log does not tell of the broken server: %s", p.stderr)
			}
			eventually(t, promptly, "a private gateway takes its servers along", func() bool {
				return bridged || len(processesOf(h.dir)) == 0
			})
		})
	}
}

// TestBridgeSurvivesGateway kills the gateway under a bridge during a call. The
// client goes on when there is a new one, and notices nothing but that call.
func TestBridgeSurvivesGateway(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.configure(map[string]entry{"server": misbehaving()})
	g := h.serve()
	g.ready("server")
	c, p := h.stdio("--server", "server")
	call := c.hang("")

	g.signal(syscall.SIGKILL)

	a := <-call
	if a.err != nil || !strings.Contains(string(a.message.Result), `"garra/error":{"code":"gateway.ended"`) {
		t.Fatalf("the call in flight ended with %+v", a)
	}
	h.serve().ready("server")
	eventually(t, patience, "the bridge reaches the new gateway", func() bool {
		text, ok := textOf(c.call("echo", `{"text":"again"}`))
		return ok && text == "again"
	})
	if _, noise := p.heard(); len(noise) > 0 {
		t.Errorf("the client was surprised by %q", noise)
	}
	if err := c.hangUp(); err != nil {
		t.Errorf("at the end of its input: %v", err)
	}
}
