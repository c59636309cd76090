// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// noisy is a server that writes everywhere and everything.
func noisy() rig.Entry {
	return rig.Misbehaving("--banner", "Server started", "--bom", "--noise-before-reply", "--scalar-line", "--crlf",
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
			h := rig.NewHome(t)
			h.Configure(map[string]rig.Entry{
				"noisy": noisy(), "broken": rig.Misbehaving("--traceback"), "unknown": {"comand": "x"},
			})
			if bridged {
				h.Serve().Ready("noisy")
			}
			c, p := h.Stdio("--log-level", "debug")
			for range 3 {
				if text := c.Text("noisy__echo", `{"text":"heard"}`); text != "heard" {
					t.Errorf("echo says %q", text)
				}
			}
			for _, tool := range []string{"bad_json", "truncated_line", "array_line", "null_id_error"} {
				c.Call("noisy__"+tool, `{}`)
			}
			c.Request("e2e/unknown", `{}`)
			if err := c.HangUp(); err != nil {
				t.Errorf("at the end of its input: %v", err)
			}
			messages, noise := p.Heard()
			if len(noise) > 0 {
				t.Errorf("standard output holds %q", noise)
			}
			if messages < 9 {
				t.Errorf("only %d messages", messages)
			}
			if !bridged && !strings.Contains(p.Stderr.String(), "ModuleNotFoundError") {
				t.Errorf("the log does not tell of the broken server: %s", p.Stderr)
			}
			rig.Eventually(t, rig.Promptly, "a private gateway takes its servers along", func() bool {
				return bridged || len(rig.ProcessesOf(h.Dir)) == 0
			})
		})
	}
}

// TestBridgeSurvivesGateway kills the gateway under a bridge during a call. The
// client goes on when there is a new one, and notices nothing but that call.
func TestBridgeSurvivesGateway(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	h.Configure(map[string]rig.Entry{"server": rig.Misbehaving()})
	g := h.Serve()
	g.Ready("server")
	c, p := h.Stdio("--server", "server")
	call := c.Hang("")

	g.Signal(syscall.SIGKILL)

	a := <-call
	if a.Err != nil || !strings.Contains(string(a.Message.Result), `"garra/error":{"code":"gateway.ended"`) {
		t.Fatalf("the call in flight ended with %+v", a)
	}
	h.Serve().Ready("server")
	rig.Eventually(t, rig.Patience, "the bridge reaches the new gateway", func() bool {
		text, ok := rig.TextOf(c.Call("echo", `{"text":"again"}`))
		return ok && text == "again"
	})
	if _, noise := p.Heard(); len(noise) > 0 {
		t.Errorf("the client was surprised by %q", noise)
	}
	if err := c.HangUp(); err != nil {
		t.Errorf("at the end of its input: %v", err)
	}
}
