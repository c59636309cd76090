// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bareHost is a Linux host with an empty PATH folder, so that only what a test
// installs can be found there.
func bareHost(t *testing.T) (Host, string) {
	t.Helper()
	bin := t.TempDir()
	return Host{GOOS: "linux", Env: []string{"PATH=" + bin, "HOME=" + t.TempDir()}}, bin
}

func TestCommandInPath(t *testing.T) {
	host, bin := bareHost(t)
	second := t.TempDir()
	host.Env[0] += "::relative:.:" + second + ":" + bin
	want := writeFile(t, second, "tool", "", 0o755)
	spec := mustBuild(t, Entry{Command: "tool"}, host, nil)
	if spec.Path != want || spec.Args[0] != "tool" {
		t.Errorf("got %s as %q", spec.Path, spec.Args[0])
	}
	if diff := cmp.Diff([]string{bin, second}, spec.SearchPath); diff != "" {
		t.Error(diff)
	}
	if o := origins(spec)["PATH"]; o != OriginHost {
		t.Errorf("PATH is from %s", o)
	}
}

func TestCommandIsAPath(t *testing.T) {
	host, _ := bareHost(t)
	dir := t.TempDir()
	want := writeFile(t, dir, "sub/bin/tool", "", 0o755)
	for _, e := range []Entry{
		{Command: want},
		{Command: "./sub/bin/tool", Cwd: dir},
		{Command: "bin/tool", Cwd: "sub", Dir: dir},
		{Command: "../sub/bin/tool", Cwd: "sub", Dir: dir},
	} {
		spec := mustBuild(t, e, host, nil)
		if spec.Path != want || len(spec.SearchPath) > 0 {
			t.Errorf("%s in %s: got %s after searching %q", e.Command, e.Cwd, spec.Path, spec.SearchPath)
		}
	}
}

// TestWellKnownFolders installs a command in one folder after the other, from
// the last of the list to the first: the one before must be preferred.
func TestWellKnownFolders(t *testing.T) {
	host, bin := bareHost(t)
	home := homeOf(host)
	folders := []string{
		".local/bin", "bin", ".nvm/versions/node/v22.1.0/bin", ".local/share/fnm/aliases/default/bin",
		"Library/Application Support/fnm/aliases/default/bin", ".fnm/aliases/default/bin",
		".volta/bin", ".asdf/shims",
		".local/share/mise/shims", ".nodenv/shims", "n/bin", ".bun/bin", ".deno/bin", ".cargo/bin", ".pyenv/shims",
		"go/bin", ".nix-profile/bin",
	}
	for _, folder := range slices.Backward(folders) {
		want := writeFile(t, home, folder+"/garra-test-tool", "", 0o755)
		spec := mustBuild(t, Entry{Command: "garra-test-tool"}, host, nil)
		if spec.Path != want {
			t.Errorf("found %s, want %s", spec.Path, want)
		}
		if got := values(spec)["PATH"]; got != bin+":"+filepath.Dir(want) {
			t.Errorf("PATH is %s", got)
		}
		i := slices.IndexFunc(spec.Vars, func(v Var) bool { return v.Name == "PATH" })
		if v := spec.Vars[i]; v.Origin != OriginSearch || v.Where != filepath.Dir(want) {
			t.Errorf("PATH is from %s, %s", v.Origin, v.Where)
		}
	}
}

func TestWellKnownFoldersOfSystems(t *testing.T) {
	for goos, want := range map[string]string{
		"darwin": "/opt/homebrew/bin", "linux": "/snap/bin", "freebsd": "/usr/local/bin",
	} {
		folders := newSystem(Host{GOOS: goos}).wellKnown()
		if !slices.Contains(folders, want) || folders[len(folders)-1] != "/bin" {
			t.Errorf("%s: got %q", goos, folders)
		}
	}
	termux := newSystem(Host{GOOS: "android", Env: []string{"PREFIX=/data/com.termux/usr", "HOME=/h"}}).wellKnown()
	if !slices.Contains(termux, "/data/com.termux/usr/bin") || !slices.Contains(termux, "/h/bin") {
		t.Errorf("Termux: got %q", termux)
	}
}

func TestNvmVersions(t *testing.T) {
	for _, c := range []struct {
		name    string
		aliases map[string]string
		want    string
	}{
		{"no alias", nil, "v22.10.0"},
		{"exact", map[string]string{"default": "v18.20.1\n"}, "v18.20.1"},
		{"major", map[string]string{"default": "20"}, "v20.9.0"},
		{"minor", map[string]string{"default": "22.9"}, "v22.9.1"},
		{"no prefix of a number", map[string]string{"default": "2"}, "v22.10.0"},
		{"newest", map[string]string{"default": "node"}, "v22.10.0"},
		{"over names", map[string]string{"default": "lts/*", "lts/*": "lts/iron", "lts/iron": "v20"}, "v20.9.0"},
		{"not installed", map[string]string{"default": "v4.0.0"}, "v22.10.0"},
		{"loop", map[string]string{"default": "default"}, "v22.10.0"},
		{"leaves the folder", map[string]string{"default": "../../etc/passwd"}, "v22.10.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, _ := bareHost(t)
			nvm := t.TempDir()
			host.Env = append(host.Env, "NVM_DIR="+nvm)
			for _, version := range []string{"v18.20.1", "v20.9.0", "v22.9.1", "v22.10.0", "v22.10.0-rc.1", "junk"} {
				writeFile(t, nvm, "versions/node/"+version+"/bin/node", "", 0o755)
			}
			for name, text := range c.aliases {
				writeFile(t, nvm, "alias/"+name, text, 0o644)
			}
			spec := mustBuild(t, Entry{Command: "node"}, host, nil)
			if want := filepath.Join(nvm, "versions/node", c.want, "bin/node"); spec.Path != want {
				t.Errorf("found %s, want %s", spec.Path, want)
			}
		})
	}
}

// TestScriptsFindTheirInterpreter has npx, a script for node, in a folder that
// is not in PATH.
func TestScriptsFindTheirInterpreter(t *testing.T) {
	const script = "#!/usr/bin/env garra-node\n"
	install := func(t *testing.T, npx, node string) (*Spec, error) {
		host, bin := bareHost(t)
		place := strings.NewReplacer("HOME", homeOf(host), "PATH", bin)
		writeFile(t, place.Replace(npx), "npx", script, 0o755)
		if node != "" {
			writeFile(t, place.Replace(node), "garra-node", "\x7fELF", 0o755)
		}
		return Build(t.Context(), Entry{Server: "s", Command: "npx"}, host, nil)
	}
	for _, c := range []struct{ name, npx, node string }{
		{"same folder", "HOME/.volta/bin", "HOME/.volta/bin"},
		{"another well-known folder", "HOME/.local/bin", "HOME/.asdf/shims"},
		{"script in PATH", "PATH", "HOME/.bun/bin"},
		{"interpreter in PATH", "HOME/.local/bin", "PATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := install(t, c.npx, c.node)
			if err != nil {
				t.Fatal(err)
			}
			path := values(spec)["PATH"]
			for _, folder := range strings.Split(path, ":") {
				if _, err := os.Stat(filepath.Join(folder, "garra-node")); err == nil {
					return
				}
			}
			t.Errorf("node is not in %s", path)
		})
	}
	_, err := install(t, "HOME/.local/bin", "")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `needs "garra-node"`) {
		t.Errorf("got %v", err)
	}
}

func TestInterpreter(t *testing.T) {
	dir := t.TempDir()
	sys := newSystem(Host{GOOS: "linux"})
	for text, want := range map[string]string{
		"#!/bin/sh\n":                     "/bin/sh",
		"#! /bin/sh -e\n":                 "/bin/sh",
		"#!/usr/bin/env node":             "env node",
		"#!/usr/bin/env -S node --x\n":    "env node",
		"#!/usr/bin/env -i node\n":        "",
		"#!/usr/bin/env -S A=b node\n":    "",
		"#!/usr/bin/env /opt/node\n":      "",
		"#!/usr/bin/env\n":                "",
		"#!relative\n":                    "",
		"#!\n":                            "",
		"\x7fELF":                         "",
		"":                                "",
		"# no\n#!/bin/sh":                 "",
		"#!" + strings.Repeat("/x", 4096): "/x" + strings.Repeat("/x", 126),
	} {
		program, byName := sys.interpreter(writeFile(t, dir, "script", text, 0o755))
		if byName {
			program = "env " + program
		}
		if program != want {
			t.Errorf("%q: got %q, want %q", text, program, want)
		}
	}
}

func TestInterpreterProblems(t *testing.T) {
	host, bin := bareHost(t)
	writeFile(t, bin, "locked", "", 0o644)
	for _, c := range []struct {
		text, want string
		kind       error
	}{
		{"#!/no/such/python\n", `needs "/no/such/python", which is not there`, ErrNotFound},
		{
			"#!/usr/bin/env garra-no-such-program\n",
			`needs "garra-no-such-program", which is not there; install it, or set a PATH in env that has it ` +
				"(searched " + bin + ", ", ErrNotFound,
		},
		{"#!" + bin + "/locked\n", "is not executable", ErrNotExecutable},
		{"#!/usr/bin/env locked\n", "is not executable", ErrNotExecutable},
	} {
		script := writeFile(t, t.TempDir(), "script", c.text, 0o755)
		_, err := Build(t.Context(), Entry{Command: script}, host, nil)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), script) {
			t.Errorf("%q: got %v", c.text, err)
		}
	}
}

func TestEntryWithItsOwnPath(t *testing.T) {
	host, bin := bareHost(t)
	own := t.TempDir()
	writeFile(t, homeOf(host), ".local/bin/tool", "", 0o755)
	e := Entry{Server: "s", Command: "tool", Env: map[string]string{"PATH": own + ":${PATH}"}}
	_, err := Build(t.Context(), e, host, nil)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "(searched "+own+", "+bin+")") {
		t.Errorf("got %v", err)
	}
	want := writeFile(t, own, "tool", "", 0o755)
	spec := mustBuild(t, e, host, nil)
	if spec.Path != want || values(spec)["PATH"] != own+":"+bin {
		t.Errorf("found %s, PATH is %s", spec.Path, values(spec)["PATH"])
	}
	file := writeFile(t, t.TempDir(), ".env", "PATH="+own, 0o600)
	spec = mustBuild(t, Entry{Command: "tool", EnvFile: file}, host, nil)
	if spec.Path != want || origins(spec)["PATH"] != OriginEnvFile {
		t.Errorf("found %s, PATH is from %s", spec.Path, origins(spec)["PATH"])
	}
}

func TestCommandProblems(t *testing.T) {
	host, bin := bareHost(t)
	home := homeOf(host)
	writeFile(t, bin, "locked", "", 0o644)
	writeFile(t, bin, "folder/x", "", 0o644)
	writeFile(t, home, ".local/bin/hidden", "", 0o600)
	if err := os.Symlink("/no/such/target", filepath.Join(bin, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command, want string
		kind          error
	}{
		{"garra-none", `command "garra-none" not found; install it`, ErrNotFound},
		{"garra-none", "(searched " + bin + ", " + home + "/.local/bin", ErrNotFound},
		{"garra-none -y x", `write the program alone ("garra-none") in command`, ErrNotFound},
		{"", "the command is empty", ErrNotFound},
		{bin + "/none", `there is no file "` + bin + `/none"`, ErrNotFound},
		{"./none", `there is no file "` + home + `/none"`, ErrNotFound},
		{"locked", `"` + bin + `/locked" is not executable`, ErrNotExecutable},
		{"hidden", `"` + home + `/.local/bin/hidden" is not executable`, ErrNotExecutable},
		{bin + "/locked", "is not executable", ErrNotExecutable},
		{"folder", "is a folder", ErrNotExecutable},
		{bin, "is a folder", ErrNotExecutable},
		{"dangling", "is a link to a file that does not exist", ErrNotExecutable},
		{bin + "/dangling", "is a link to a file that does not exist", ErrNotExecutable},
		{"/dev/null", "is not a regular file", ErrNotExecutable},
	} {
		_, err := Build(t.Context(), Entry{Server: "srv", Command: c.command}, host, nil)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v; want %q", c.command, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), `server "srv": command: `) {
			t.Errorf("%q: the message does not name the server: %v", c.command, err)
		}
	}
}

func TestUnusableFileDoesNotHideALaterOne(t *testing.T) {
	host, bin := bareHost(t)
	writeFile(t, bin, "tool", "", 0o644)
	want := writeFile(t, homeOf(host), ".cargo/bin/tool", "", 0o755)
	if spec := mustBuild(t, Entry{Command: "tool"}, host, nil); spec.Path != want {
		t.Errorf("found %s", spec.Path)
	}
}

func TestNoFolderInPath(t *testing.T) {
	e := Entry{Command: "garra-none", Env: map[string]string{"PATH": ""}}
	_, err := Build(t.Context(), e, unixHost(t), nil)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "PATH holds no folder") {
		t.Errorf("got %v", err)
	}
}

// TestRelativeFoldersOfPathRunNothing has a program in the working directory,
// which PATH names in three ways.
func TestRelativeFoldersOfPathRunNothing(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "garra-trap", "", 0o755)
	writeFile(t, dir, "sub/garra-trap", "", 0o755)
	host := Host{GOOS: "linux", Env: []string{"PATH=:.:sub", "HOME=" + dir}}
	_, err := Build(t.Context(), Entry{Command: "garra-trap", Cwd: dir}, host, nil)
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestLinksAreFollowed(t *testing.T) {
	host, bin := bareHost(t)
	real := writeFile(t, t.TempDir(), "real", "", 0o755)
	for name, target := range map[string]string{"linked": real, "to-folder": filepath.Dir(real)} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if spec := mustBuild(t, Entry{Command: "linked"}, host, nil); spec.Path != filepath.Join(bin, "linked") {
		t.Errorf("found %s", spec.Path)
	}
	_, err := Build(t.Context(), Entry{Command: "to-folder"}, host, nil)
	if !errors.Is(err, ErrNotExecutable) {
		t.Errorf("a link to a folder: got %v", err)
	}
}

// TestFoldersAreAppendedInTheOrderFound has a script, its interpreter, which is
// a script too, and the interpreter of that in three folders.
func TestFoldersAreAppendedInTheOrderFound(t *testing.T) {
	host, bin := bareHost(t)
	home := homeOf(host)
	writeFile(t, home, ".cargo/bin/one", "#!/usr/bin/env two\n", 0o755)
	writeFile(t, home, ".local/bin/two", "#!/usr/bin/env -S three --quiet\n", 0o755)
	writeFile(t, home, ".bun/bin/three", "\x7fELF", 0o755)
	spec := mustBuild(t, Entry{Command: "one"}, host, nil)
	added := home + "/.cargo/bin:" + home + "/.local/bin:" + home + "/.bun/bin"
	i := slices.IndexFunc(spec.Vars, func(v Var) bool { return v.Name == "PATH" })
	if v := spec.Vars[i]; v.value != bin+":"+added || v.Where != added || v.Origin != OriginSearch {
		t.Errorf("PATH is %s from %s at %s", v.value, v.Origin, v.Where)
	}
}

func TestScriptThatInterpretsItself(t *testing.T) {
	host, bin := bareHost(t)
	file := filepath.Join(bin, "self")
	writeFile(t, bin, "self", "#!"+file+"\n", 0o755)
	if spec := mustBuild(t, Entry{Command: "self"}, host, nil); spec.Path != file {
		t.Errorf("found %s", spec.Path)
	}
}
