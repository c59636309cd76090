// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deniedFiles are the system's files, of which some can't be looked at and
// some can't be opened.
type deniedFiles struct {
	osFiles
	hidden, locked string
}

func (d deniedFiles) Stat(name string) (fs.FileInfo, error) {
	if d.hidden != "" && strings.HasPrefix(name, d.hidden) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrPermission}
	}
	return d.osFiles.Stat(name)
}

func (d deniedFiles) Lstat(name string) (fs.FileInfo, error) { return d.Stat(name) }

func (d deniedFiles) Open(name string) (fs.File, error) {
	if d.locked != "" && strings.HasPrefix(name, d.locked) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.osFiles.Open(name)
}

func TestFolderThatMustNotBeLookedInto(t *testing.T) {
	host, bin := bareHost(t)
	writeFile(t, bin, "tool", "", 0o755)
	host.Files = deniedFiles{hidden: bin}
	for _, command := range []string{"tool", bin + "/tool"} {
		_, err := Build(t.Context(), Entry{Server: "s", Command: command}, host, nil)
		if !errors.Is(err, ErrNotExecutable) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: got %v", command, err)
		}
	}
	_, err := Build(t.Context(), Entry{Server: "s", Command: "/bin/sh", Cwd: bin}, host, nil)
	if !errors.Is(err, ErrCwd) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("cwd: got %v", err)
	}
}

func TestFilesThatMustNotBeRead(t *testing.T) {
	host, bin := bareHost(t)
	tool := writeFile(t, bin, "tool", "#!/no/such/interpreter\n", 0o711)
	file := writeFile(t, bin, ".env", "A=1\n", 0o600)
	host.Files = deniedFiles{locked: bin}
	spec := mustBuild(t, Entry{Command: "tool"}, host, nil)
	if spec.Path != tool {
		t.Errorf("a program that can be run and not read: found %s", spec.Path)
	}
	_, err := Build(t.Context(), Entry{Server: "s", Command: "tool", EnvFile: file}, host, nil)
	if !errors.Is(err, ErrEnvFile) || !errors.Is(err, fs.ErrPermission) || strings.Count(err.Error(), file) != 1 {
		t.Errorf("env file: got %v", err)
	}
}

func TestSettingsOfAHost(t *testing.T) {
	host := Host{GOOS: "linux", Home: "/fallback", Env: []string{
		"A=1", "A=2", "EMPTY=", "NOEQUALS", "=X=1", "EQ=a=b", "HOME=relative",
	}}
	sys := newSystem(host)
	for name, want := range map[string]string{"A": "1", "EMPTY": "", "EQ": "a=b"} {
		if got, set := sys.lookup(name); got != want || !set {
			t.Errorf("%s is %q, set %t", name, got, set)
		}
	}
	for _, name := range []string{"NOEQUALS", "", "=X", "a"} {
		if _, set := sys.lookup(name); set {
			t.Errorf("%q is set", name)
		}
	}
	if sys.home != "/fallback" {
		t.Errorf("the home is %q", sys.home)
	}
}

// TestHomeThatIsNotUsable has a HOME that is passed on as it is, and is not
// taken for the home folder.
func TestHomeThatIsNotUsable(t *testing.T) {
	home := t.TempDir()
	host := Host{GOOS: "linux", Home: home, Env: []string{"PATH=/bin", "HOME=relative"}}
	spec := mustBuild(t, Entry{Command: "sh", Args: []string{"~/x"}}, host, nil)
	if spec.Dir != home || spec.Args[1] != home+"/x" || values(spec)["HOME"] != "relative" {
		t.Errorf("working in %s with %q", spec.Dir, []string(spec.Args))
	}
}

func TestRelativeFoldersNeedABase(t *testing.T) {
	host, _ := bareHost(t)
	_, err := Build(t.Context(), Entry{Server: "s", Command: "/bin/sh", Cwd: "."}, host, nil)
	if !errors.Is(err, ErrCwd) || !strings.Contains(err.Error(), "no absolute path") {
		t.Errorf("got %v", err)
	}
}

// TestHostIsNotChanged builds twice from the same values.
func TestHostIsNotChanged(t *testing.T) {
	host := unixHost(t, "LANG=C")
	e := Entry{Command: "/bin/sh", Args: []string{"${LANG}"}, Env: map[string]string{"A": "${LANG}", "LANG": "x"}}
	first := mustBuild(t, e, host, nil)
	second := mustBuild(t, e, host, nil)
	if diff := cmp.Diff(first.Environ(), second.Environ()); diff != "" {
		t.Error(diff)
	}
	if e.Args[0] != "${LANG}" || e.Env["A"] != "${LANG}" || values(first)["A"] != "C" {
		t.Errorf("the entry became %+v", e)
	}
}
