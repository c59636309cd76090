// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// everythingClient is the other conformance fixture of the Go SDK: a client that
// does in each scenario what the suite's server wants to see.
const everythingClient = "github.com/modelcontextprotocol/go-sdk/conformance/everything-client"

// behindGarra is the first argument of the test binary as the client under test:
// the fixture, with garra between it and the server of the suite. What that sees
// is garra. Its other arguments are garra, the fixture, the era that the entry
// names, and, from the suite, the server's address.
const behindGarra = "garra-e2e-behind-garra"

// TestConformanceClient runs the client scenarios of the conformance suite with
// garra as the client of a server at a url, in both eras.
func TestConformanceClient(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	fixture := h.path("everything-client")
	build := run(t, exec.CommandContext(t.Context(), "go", "build", "-o", fixture, everythingClient))
	if build.code != 0 {
		t.Fatalf("building the fixture: %s", build.stderr)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ revision, era, baseline string }{
		{"2025-11-25", "auto", "conformance-client.yml"},
		{"2026-07-28", "modern", "conformance-client.yml"},
	} {
		command := strings.Join([]string{own, behindGarra, absolute(t, *binary), fixture, s.era}, " ")
		out := run(t, h.client("conformance", "client", "--command", command, "--requirements", s.revision,
			"--expected-failures", absolute(t, s.baseline), "-o", h.path("client-"+s.revision)))
		passed := len(summary.FindAllString(out.stdout, -1))
		t.Logf("client, %s: %d scenarios", s.revision, passed)
		if out.code != 0 || passed < 10 {
			t.Errorf("client, %s: code %d\n%s%s", s.revision, out.code, out.stdout, out.stderr)
		}
	}
}

// runBehindGarra plays the client under test and returns its exit code.
func runBehindGarra(garra, fixture, era, url string) int {
	dir, err := os.MkdirTemp("", "garra-conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is the system's to remove
	err = serveRemote(garra, dir, era, url, func(address string) error {
		client := exec.Command(fixture, "http://"+address+"/mcp/remote")
		client.Stdout, client.Stderr = os.Stdout, os.Stderr
		return client.Run()
	})
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serveRemote runs a gateway of one server at a url while use runs.
func serveRemote(garra, dir, era, url string, use func(address string) error) error {
	entry := map[string]any{"url": url, "protocolEra": era}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"remote": entry}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "mcp.json"), config, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, garra, append(args, "--config-dir", dir)...)
		cmd.Env = append(os.Environ(), "GARRAIA_STATE_DIR="+dir, "HOME="+dir)
		cmd.Stderr = os.Stderr
		return cmd
	}
	serve := command("serve", "--listen", "127.0.0.1:0", "--no-auth")
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM) // gone is as good
		_ = serve.Wait()                          // its log says what was wrong
	}()
	out, err := command("config", "path", "--json").Output()
	if err != nil {
		return err
	}
	var places struct {
		RunDir string `json:"run_dir"`
	}
	if err := json.Unmarshal(out, &places); err != nil {
		return err
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		var running runFile
		text, err := os.ReadFile(filepath.Join(places.RunDir, "run.json"))
		if err == nil && json.Unmarshal(text, &running) == nil && running.PID == serve.Process.Pid {
			return use(running.Address)
		}
		<-look.C
	}
	return errors.New("the gateway is not there")
}
