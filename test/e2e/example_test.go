// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/garraia/garra/test/rig"
)

// TestExample does what the README begins with.
func TestExample(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	g := h.Serve("--example")
	g.Ready("example")

	if list := h.Garra("mcp", "list"); !strings.Contains(list, "example") || !strings.Contains(list, "ready") {
		t.Errorf("mcp list prints\n%s", list)
	}
	said := h.Garra("mcp", "call", "example", "echo", "--args", `{"text":"hello"}`)
	if strings.TrimSpace(said) != "hello" {
		t.Errorf("echo prints %q", said)
	}
	if text := g.Connect("").Text("example__echo", `{"text":"over HTTP"}`); text != "over HTTP" {
		t.Errorf("over HTTP echo says %q", text)
	}
	children := rig.Descendants(g.PID)
	if len(children) < 2 {
		t.Fatalf("a guardian and a server should run, there are %v", children)
	}

	g.Stop()

	if left := rig.Survivors(children); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
	if _, err := net.Dial("unix", g.Socket); err == nil {
		t.Error("the socket still answers")
	}
	for _, file := range []string{g.Socket, filepath.Join(g.RunDir, "run.json")} {
		if _, err := os.Lstat(file); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", file, err)
		}
	}
}
