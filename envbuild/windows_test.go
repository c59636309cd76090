// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// windowsFiles is a file system with names like `C:\folder\file`.
type windowsFiles struct{ files fstest.MapFS }

func (w windowsFiles) Stat(name string) (fs.FileInfo, error) { return w.files.Stat(slashed(name)) }

func (w windowsFiles) Lstat(name string) (fs.FileInfo, error) { return w.files.Lstat(slashed(name)) }

func (w windowsFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	return w.files.ReadDir(slashed(name))
}

func (w windowsFiles) Open(name string) (fs.File, error) { return w.files.Open(slashed(name)) }

// slashed is the name of a Windows file in a MapFS, which minds the case.
func slashed(name string) string {
	return strings.ToLower(strings.Trim(strings.ReplaceAll(name, `\`, "/"), "/"))
}

// windowsHost has the given files and variables, and a home.
func windowsHost(files []string, env ...string) Host {
	system := fstest.MapFS{"c:/users/me": {Mode: fs.ModeDir | 0o755}}
	for _, name := range files {
		system[slashed(name)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o666}
	}
	env = append([]string{`USERPROFILE=C:\Users\me`, `=C:=C:\Windows`}, env...)
	return Host{GOOS: "windows", Env: env, Files: windowsFiles{system}}
}

func TestWindowsNamesIgnoreCase(t *testing.T) {
	host := windowsHost([]string{`C:\bin\tool.exe`}, `Path=C:\bin`, `SYSTEMROOT=C:\Windows`, `ProgramFiles(x86)=C:\P86`,
		`Secret_Token=canary`, `HTTP_PROXY=canary`, `Temp=C:\T`)
	e := Entry{Server: "s", Command: "tool", Env: map[string]string{"TEMP": `${temp}\s`, "Other": "${SECRET_TOKEN}"}}
	spec := mustBuild(t, e, host, nil)
	want := map[string]string{
		"Path": `C:\bin`, "SYSTEMROOT": `C:\Windows`, "ProgramFiles(x86)": `C:\P86`, "USERPROFILE": `C:\Users\me`,
		"TEMP": `C:\T\s`, "Other": "canary",
	}
	if diff := cmp.Diff(want, values(spec)); diff != "" {
		t.Error(diff)
	}
	e.Env = map[string]string{"A": "1", "a": "2"}
	if _, err := Build(t.Context(), e, host, nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("one variable in two spellings: got %v", err)
	}
}

func TestWindowsCommands(t *testing.T) {
	node := `C:\Program Files\nodejs`
	host := windowsHost([]string{
		node + `\node.exe`, node + `\npx.cmd`, node + `\npx`, node + `\npx.ps1`, `C:\bin\both.exe`, `C:\bin\both.cmd`,
		`C:\bin\script.js`, `C:\bin\dot.name.exe`, `C:\Users\me\app\run.bat`,
	}, `Path=%SystemDrive%\bin;"%NODE%";relative;%UNSET%\x`, `SystemDrive=C:`, `NODE=`+node,
		`PATHEXT=.COM;.EXE;.BAT;.CMD;.VBS;.JS;.MSC`)
	for command, want := range map[string]string{
		"node":                    node + `\node.exe`,
		"node.exe":                node + `\node.exe`,
		"npx":                     node + `\npx.cmd`,
		"npx.cmd":                 node + `\npx.cmd`,
		"both":                    `C:\bin\both.exe`,
		"dot.name":                `C:\bin\dot.name.exe`,
		`C:\bin\both`:             `C:\bin\both.exe`,
		`C:/bin/both.cmd`:         `C:/bin/both.cmd`,
		`app\run`:                 `C:\Users\me\app\run.bat`,
		`~\app\run.bat`:           `C:\Users\me\app\run.bat`,
		`${NODE}\npx`:             node + `\npx.cmd`,
		`${UNSET:-C:\bin\both}`:   `C:\bin\both.exe`,
		`${SystemDrive}\bin\both`: `C:\bin\both.exe`,
		`${SYSTEMDRIVE}/bin/both`: `C:/bin/both.exe`,
		`${env:NODE}\node`:        node + `\node.exe`,
		`C:\bin\script.js`:        "",
		"script.js":               "",
		"npx.ps1":                 "",
		"missing":                 "",
	} {
		spec, err := Build(t.Context(), Entry{Server: "s", Command: command}, host, nil)
		if want == "" {
			if err == nil {
				t.Errorf("%s: found %s", command, spec.Path)
			}
			continue
		}
		if err != nil || spec.Path != want {
			t.Errorf("%s: got %v, %v; want %s", command, spec, err, want)
		}
	}
	spec := mustBuild(t, Entry{Command: "node"}, host, nil)
	if got, want := values(spec)["Path"], `C:\bin;"`+node+`";relative;%UNSET%\x`; got != want {
		t.Errorf("Path is %s, want %s", got, want)
	}
	_, err := Build(t.Context(), Entry{Command: "script.js"}, host, nil)
	if !errors.Is(err, ErrNotExecutable) || !strings.Contains(err.Error(), "interpreter") {
		t.Errorf("a script: got %v", err)
	}
}

func TestWindowsWellKnownFolders(t *testing.T) {
	host := windowsHost([]string{`C:\Users\me\AppData\Roaming\npm\tool.cmd`}, `PATH=C:\Windows`,
		`APPDATA=C:\Users\me\AppData\Roaming`)
	spec := mustBuild(t, Entry{Command: "tool"}, host, nil)
	if want := `C:\Windows;C:\Users\me\AppData\Roaming\npm`; values(spec)["PATH"] != want {
		t.Errorf("PATH is %s", values(spec)["PATH"])
	}
	folders := newSystem(host).wellKnown()
	if !slices.Contains(folders, `C:\Users\me\.local\bin`) || slices.Contains(folders, "") {
		t.Errorf("got %q", folders)
	}
}

func TestBatchFilesGetNoArgumentsForTheirShell(t *testing.T) {
	host := windowsHost([]string{`C:\bin\npx.cmd`, `C:\bin\node.exe`}, `PATH=C:\bin`)
	args := []string{"-y", "@scope/pkg", `C:\My Files`, "a&calc", "%PATH%"}
	_, err := Build(t.Context(), Entry{Server: "s", Command: "npx", Args: args}, host, nil)
	problems, _ := errors.AsType[Errors](err)
	if len(problems) != 2 || problems[0].Field != "args[3]" || problems[1].Field != "args[4]" {
		t.Errorf("got %v", err)
	}
	spec := mustBuild(t, Entry{Server: "s", Command: "node", Args: args}, host, nil)
	if !slices.Equal(spec.Args[1:], args) {
		t.Errorf("got %q", []string(spec.Args))
	}
}

func TestPlatformPaths(t *testing.T) {
	windows := newPlatform("windows")
	for name, want := range map[string]bool{
		`C:\x`: true, `c:/x`: true, `\\server\share`: true,
		`C:x`: false, `\x`: false, `x`: false, `.\x`: false, "": false,
	} {
		if got := windows.isAbs(name); got != want {
			t.Errorf("isAbs(%q) is %t", name, got)
		}
	}
	if got := windows.join(`C:\a\`, "b/c"); got != `C:\a\b\c` {
		t.Errorf("join: got %s", got)
	}
	if got := newPlatform("linux").join("/a/", "b", "../c"); got != "/a/c" {
		t.Errorf("join: got %s", got)
	}
}

func TestWindowsWithoutAnEnvironment(t *testing.T) {
	host := windowsHost([]string{`C:\Users\me\.local\bin\uvx.exe`, `D:\nvm\node.exe`}, `NVM_SYMLINK=D:\nvm`)
	host.Env, host.Home = host.Env[1:], `C:\Users\me`
	for command, folder := range map[string]string{"uvx": `C:\Users\me\.local\bin`, "node": `D:\nvm`} {
		spec := mustBuild(t, Entry{Command: command}, host, nil)
		want := map[string]string{"PATH": folder, "USERPROFILE": `C:\Users\me`}
		if diff := cmp.Diff(want, values(spec)); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
		if o := origins(spec); o["PATH"] != OriginSearch || o["USERPROFILE"] != OriginDefault {
			t.Errorf("%s: origins are %v", command, o)
		}
	}
}

func TestWindowsRootIsTheLastResort(t *testing.T) {
	host := windowsHost([]string{`C:\bin\tool.exe`}, `PATH=C:\bin`)
	host.Env = host.Env[2:]
	spec := mustBuild(t, Entry{Server: "s", Command: "tool"}, host, nil)
	if spec.Dir != `C:\` || len(spec.Warnings) != 1 {
		t.Errorf("working in %s with warnings %q", spec.Dir, spec.Warnings)
	}
}

func TestExpandPercent(t *testing.T) {
	sys := newSystem(Host{GOOS: "windows", Env: []string{"A=1", "Nested=%A%", "EMPTY="}})
	for text, want := range map[string]string{
		"": "", "x": "x", "%A%": "1", "%a%;%A%": "1;1", "%NO%": "%NO%", "%": "%", "100%": "100%", "%%": "%%",
		"%Nested%": "%A%", "%EMPTY%x": "x", "%NO%A%": "%NO1", "50% %A%": "50% 1",
	} {
		if got := sys.expandPercent(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
