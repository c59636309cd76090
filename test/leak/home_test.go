// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package leak

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A home is a user of garra: folders, canaries, and a record of all that left it.
type home struct {
	*record
	t        *testing.T
	dir      string
	binary   string
	format   string // of logs
	canaries flock
	given    map[string]bool // files that the test wrote secrets to
}

func newHome(t *testing.T, binary, format string) *home {
	t.Helper()
	h := &home{
		record: new(record), t: t, dir: t.TempDir(), binary: binary, format: format, canaries: hatch(t),
		given: make(map[string]bool),
	}
	for _, dir := range []string{"config/garraia/place-" + h.canaries.value("place"), "state", "run", "work", "tmp"} {
		if err := os.MkdirAll(h.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *home) path(elements ...string) string {
	return filepath.Join(append([]string{h.dir}, elements...)...)
}

func (h *home) configPath(name string) string { return h.path("config", "garraia", name) }

// give writes a file that may hold secrets, since a person put them there.
func (h *home) give(path, text string) string {
	h.t.Helper()
	h.given[path] = true
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// environ is the environment of garra, with the canaries that belong there.
func (h *home) environ(more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "LANG=C.UTF-8", "TMPDIR=" + h.path("tmp"),
		"XDG_CONFIG_HOME=" + h.path("config"), "XDG_STATE_HOME=" + h.path("state"), "XDG_RUNTIME_DIR=" + h.path("run"),
		"X_TOKEN=" + h.canaries.value("host"), "ARG_SECRET=" + h.canaries.value("argument"),
		"CWD_TOKEN=" + h.canaries.value("cwd"), "PLACE_TOKEN=" + h.canaries.value("place"),
		"BYSTANDER_API_KEY=" + h.canaries.value("bystander"),
	}, more...)
}

// passphrase is how garra gets the vault's passphrase.
func (h *home) passphrase() string {
	return "GARRAIA_VAULT_PASSPHRASE=" + h.canaries.value("passphrase")
}

// command is a command of garra.
func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), h.binary, args...)
	cmd.Args = append(cmd.Args, "--log-level", "debug", "--log-format", h.format)
	cmd.Env, cmd.Dir = h.environ(h.passphrase()), h.path("work")
	return cmd
}

// run runs a command to its end, with what it reads, and records what it writes. It
// returns what it wrote to standard output.
func (h *home) run(input string, args ...string) string {
	h.t.Helper()
	return h.runCommand(h.command(args...), input)
}

func (h *home) runCommand(cmd *exec.Cmd, input string) string {
	h.t.Helper()
	stdout, stderr := output(h.t, cmd, input)
	h.add("garra "+strings.Join(cmd.Args[1:], " "), stdout+"\n"+stderr+"\n")
	return stdout
}

// output runs a command to its end, whatever its exit code is.
func output(t *testing.T, cmd *exec.Cmd, input string) (stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &err
	if _, exited := errors.AsType[*exec.ExitError](cmd.Run()); cmd.ProcessState == nil && !exited {
		t.Fatalf("%q did not run", cmd.Args)
	}
	return out.String(), err.String()
}

// fillVault makes the vault with the secrets of servers.
func (h *home) fillVault() {
	h.t.Helper()
	type stored struct {
		Value  string   `json:"value"`
		For    []string `json:"for,omitempty"`
		Policy string   `json:"policy,omitempty"`
	}
	content := map[string]stored{
		"SHARED": {Value: h.canaries.value("shared"), For: []string{"full", "other"}},
		"BLOCK":  {Value: h.canaries.value("block"), For: []string{"guarded"}, Policy: "block"},
	}
	for key, name := range map[string]string{
		"full.TOKEN": "own", "full.KEY": "key", "full.ODD": "odd", "full.FILE": "file", "full.UNUSED": "unused",
		"web.HEADER": "header", "web.QUERY": "url query", "web.CLIENT": "client secret", "unset.TOKEN": "unset beside",
		"missing.TOKEN": "missing beside", "lost.TOKEN": "no command", "slow.TOKEN": "slow", "crashy.TOKEN": "crash",
		"denied.TOKEN": "denied",
	} {
		content["mcp."+key] = stored{Value: h.canaries.value(name)}
	}
	text, err := json.Marshal(content)
	if err != nil {
		h.t.Fatal(err)
	}
	h.run("", "vault", "init")
	file := h.give(h.path("secrets.json"), string(text))
	h.run("", "vault", "import", "--from", "json", file)
	if list := h.run("", "vault", "list", "--json"); !strings.Contains(list, "mcp.denied.TOKEN") {
		h.t.Fatalf("the vault is not filled: %s", list)
	}
}

// makeToken has garra make a token, which is a canary from then on.
func (h *home) makeToken(name string, args ...string) string {
	h.t.Helper()
	stdout, stderr := output(h.t, h.command(append([]string{"token", "create", "--json"}, args...)...), "")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(stdout), &made); err != nil || made.Token == "" {
		h.t.Fatalf("no token: %v in %s%s", err, stdout, stderr)
	}
	h.add("token create", stderr)
	h.canaries.put(name, made.Token)
	return made.Token
}
