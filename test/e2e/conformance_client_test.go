// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/test/rig"
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
	h := rig.NewHome(t)
	fixture := h.Path("everything-client")
	build := rig.Run(t, exec.CommandContext(t.Context(), "go", "build", "-o", fixture, everythingClient))
	if build.Code != 0 {
		t.Fatalf("building the fixture: %s", build.Stderr)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct{ revision, era, baseline string }{
		{"2025-11-25", "auto", "conformance-client.yml"},
		{"2026-07-28", "modern", "conformance-client.yml"},
	} {
		command := strings.Join([]string{own, behindGarra, rig.Binary(t), fixture, s.era}, " ")
		out := rig.Run(t, installed(h, "conformance", "client", "--command", command, "--requirements", s.revision,
			"--expected-failures", rig.Absolute(t, s.baseline), "-o", h.Path("client-"+s.revision)))
		passed := len(summary.FindAllString(out.Stdout, -1))
		t.Logf("client, %s: %d scenarios", s.revision, passed)
		if out.Code != 0 || passed < 10 {
			t.Errorf("client, %s: code %d\n%s%s", s.revision, out.Code, out.Stdout, out.Stderr)
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
	g := &behind{garra: garra, fixture: fixture, dir: dir}
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	err = g.serve(ctx, entryBehind(era, url))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// entryBehind is the entry of the suite's server. The suite says in a variable who
// its client is registered as, in the scenarios where it is.
func entryBehind(era, url string) map[string]any {
	var registered struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	// No variable, or one without them, is no registered client.
	_ = json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &registered)
	oauth := map[string]any{"clientMetadataUrl": "https://conformance-test.local/client-metadata.json"}
	if registered.ID != "" {
		oauth = map[string]any{"clientId": registered.ID, "clientSecret": registered.Secret}
	}
	return map[string]any{"url": url, "protocolEra": era, "oauth": oauth}
}

// A behind is the client under test: garra, what drives it, and the folder of both.
type behind struct{ garra, fixture, dir string }

// command is one of garra's.
func (b *behind) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.garra, append(args, "--config-dir", b.dir)...)
	cmd.Env = append(os.Environ(), "GARRAIA_STATE_DIR="+b.dir, "HOME="+b.dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// serve runs a gateway of one server while the fixture does its scenario.
func (b *behind) serve(ctx context.Context, entry map[string]any) error {
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"remote": entry}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "mcp.json"), config, 0o600); err != nil {
		return err
	}
	serve := b.command(ctx, "serve", "--listen", "127.0.0.1:0", "--no-auth")
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() {
		_ = serve.Process.Signal(syscall.SIGTERM) // gone is as good
		_ = serve.Wait()                          // its log says what was wrong
	}()
	address, err := b.address(ctx, serve.Process.Pid)
	if err != nil {
		return err
	}
	return b.drive(ctx, "http://"+address+"/mcp/remote")
}

// address waits until the gateway says where it listens.
func (b *behind) address(ctx context.Context, pid int) (string, error) {
	out, err := b.command(ctx, "config", "path", "--json").Output()
	if err != nil {
		return "", err
	}
	var places struct {
		RunDir string `json:"run_dir"`
	}
	if err := json.Unmarshal(out, &places); err != nil {
		return "", err
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		var running rig.RunFile
		text, err := os.ReadFile(filepath.Join(places.RunDir, "run.json"))
		if err == nil && json.Unmarshal(text, &running) == nil && running.PID == pid {
			return running.Address, nil
		}
		<-look.C
	}
	return "", errors.New("the gateway is not there")
}

// adviceToLogIn is the command in what garra says of a server that wants a login,
// as the fixture prints it.
var adviceToLogIn = regexp.MustCompile("garra mcp login remote((?: --scope [^ `]+)*)`")

// maxLogins is how often a person follows the advice to log in.
const maxLogins = 3

// drive lets the fixture do its scenario, and does what a person would whom garra
// tells to log in.
func (b *behind) drive(ctx context.Context, url string) error {
	said, err := b.scenario(ctx, url)
	for range maxLogins {
		advice := adviceToLogIn.FindStringSubmatch(said)
		if err == nil || advice == nil {
			return err
		}
		if said, err = b.logIn(ctx, strings.Fields(advice[1])); err == nil {
			said, err = b.scenario(ctx, url)
		}
	}
	return err
}

// scenario runs the fixture and returns what it said. The fixture doesn't show a
// result that is an error; where that is what the scenario is about, the tool is
// called once more.
func (b *behind) scenario(ctx context.Context, url string) (said string, err error) {
	var stderr bytes.Buffer
	client := exec.CommandContext(ctx, b.fixture, url)
	client.Stdout, client.Stderr = os.Stdout, io.MultiWriter(os.Stderr, &stderr)
	err = client.Run()
	if err != nil || os.Getenv("MCP_CONFORMANCE_SCENARIO") != "auth/scope-step-up" {
		return stderr.String(), err
	}
	again := b.command(ctx, "mcp", "call", "remote", "test-tool")
	again.Stderr = nil // which is read here
	result, err := again.CombinedOutput()
	return string(result), err
}

var loginPage = regexp.MustCompile(`https?://\S+response_type=code\S*`)

// logIn logs in, with a browser that goes where it is sent: the suite's
// authorization server asks nobody.
func (b *behind) logIn(ctx context.Context, scopes []string) (said string, err error) {
	login := b.command(ctx, append([]string{"mcp", "login", "remote", "--no-browser"}, scopes...)...)
	login.Stderr = nil // which is read here
	stderr, err := login.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := login.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(os.Stderr, lines.Text())
		said += lines.Text() + "\n"
		page := loginPage.FindString(lines.Text())
		if page == "" {
			continue
		}
		if res, err := http.Get(page); err == nil { // what is wrong with it, garra says
			res.Body.Close()
		}
	}
	return said, login.Wait()
}
