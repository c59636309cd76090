// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envbuild

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// run starts what a Spec describes and returns what it writes.
func run(t *testing.T, s *Spec) string {
	t.Helper()
	var errs strings.Builder
	cmd := exec.Cmd{Path: s.Path, Args: s.Args, Env: s.Environ(), Dir: s.Dir, Stderr: &errs}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %v: %v: %s", s, err, errs.String())
	}
	return string(out)
}

// TestRealChild asks a process for its environment.
func TestRealChild(t *testing.T) {
	for _, entry := range canaries() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "LD_") && !strings.HasPrefix(name, "DYLD_") && name != "PREFIX" {
			t.Setenv(name, value)
		}
	}
	e := Entry{
		Server: "s", Command: "/usr/bin/env",
		Env: map[string]string{"TOKEN": "vault:k", "GIVEN": "${GITHUB_TOKEN}", "LINES": "a\nb", "EMPTY": ""},
	}
	spec := mustBuild(t, e, SystemHost(), vaultMap{"s/k": "opened"})
	out := run(t, spec)
	for _, want := range []string{"TOKEN=opened\n", "GIVEN=canary-02-value\n", "LINES=a\nb\n", "EMPTY=\n", "PATH="} {
		if !strings.Contains(out, want) {
			t.Errorf("the child lacks %q", want)
		}
	}
	if n := strings.Count(out, "canary"); n != 1 {
		t.Errorf("the child sees %d canaries:\n%s", n, out)
	}
}

func TestRealChildThatInheritsEverything(t *testing.T) {
	t.Setenv("GITHUB_TOKEN", "canary-github")
	t.Setenv("GARRAIA_VAULT_PASSPHRASE", "canary-passphrase")
	out := run(t, mustBuild(t, Entry{Server: "s", Command: "/usr/bin/env", InheritEnv: true}, SystemHost(), nil))
	if !strings.Contains(out, "GITHUB_TOKEN=canary-github") || strings.Contains(out, "passphrase") {
		t.Errorf("the child sees:\n%s", out)
	}
}

// TestRealScript runs an npx-like script whose interpreter is in a folder that
// only a shell's start file would add to PATH.
func TestRealScript(t *testing.T) {
	home := t.TempDir()
	bin := filepath.Join(home, ".nvm/versions/node/v22.1.0/bin")
	writeFile(t, bin, "garra-runner", "#!/usr/bin/env garra-node\n", 0o755)
	writeFile(t, bin, "garra-node", "#!/bin/sh\necho \"node ran $1 with $2 in $PWD\"\n", 0o755)
	writeFile(t, home, ".bashrc", "touch "+home+"/sourced\n", 0o644)
	host := Host{Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home, "SHELL=/bin/bash"}}
	spec := mustBuild(t, Entry{Command: "garra-runner", Args: []string{"a b"}}, host, nil)
	if got, want := run(t, spec), "node ran "+bin+"/garra-runner with a b in "+home+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(home, "sourced")); err == nil {
		t.Error("a shell's start file was executed")
	}
}

// TestRealChildOfADeletedFolder starts a child while this process stands in a
// folder that is gone.
func TestRealChildOfADeletedFolder(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	host := unixHost(t)
	out := run(t, mustBuild(t, Entry{Server: "s", Command: "pwd", Args: []string{"-P"}}, host, nil))
	if home, err := filepath.EvalSymlinks(homeOf(host)); err != nil || out != home+"\n" {
		t.Errorf("the child works in %q, want %q (%v)", out, home, err)
	}
}

func TestSystemHost(t *testing.T) {
	t.Setenv("HOME", "")
	host := SystemHost()
	if !slices.Equal(host.Env, os.Environ()) || host.GOOS == "" {
		t.Errorf("got %d variables of %s", len(host.Env), host.GOOS)
	}
	if !filepath.IsAbs(host.Home) {
		t.Errorf("without HOME the home is %q", host.Home)
	}
}

// TestRealArguments hands over arguments that a shell would take apart.
func TestRealArguments(t *testing.T) {
	args := []string{"a b", "", "$HOME", "`id`", "$(id)", "it's", "\"q\"", "*", "new\nline", "ünï", "--x=~/y"}
	e := Entry{Server: "s", Command: "printf", Args: append([]string{"%s\n--\n"}, args...)}
	got := run(t, mustBuild(t, e, unixHost(t), nil))
	if want := strings.Join(args, "\n--\n") + "\n--\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRealEnvFile reads a key with several lines from a file, and lets env win.
func TestRealEnvFile(t *testing.T) {
	dir := t.TempDir()
	text := "\ufeff# keys\r\nexport KEY=\"-----BEGIN\r\nabc\r\n-----END\"\r\nBOTH=file # c\r\n"
	writeFile(t, dir, ".env", text, 0o600)
	e := Entry{
		Server: "s", Command: "sh", Args: []string{"-c", `printf %s "$KEY/$BOTH"`},
		EnvFile: ".env", Dir: dir, Env: map[string]string{"BOTH": "env"},
	}
	if got, want := run(t, mustBuild(t, e, unixHost(t), nil)), "-----BEGIN\nabc\n-----END/env"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEnvFileThatIsAPipe must not wait for somebody to write into it.
func TestEnvFileThatIsAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if out, err := exec.Command("mkfifo", pipe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, err := Build(t.Context(), Entry{Server: "s", Command: "/bin/sh", EnvFile: pipe}, unixHost(t), nil)
	if !errors.Is(err, ErrEnvFile) {
		t.Errorf("got %v", err)
	}
}
