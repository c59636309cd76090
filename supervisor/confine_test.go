// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// A place is a user's home with what servers are made of, and garra's own folders.
type place struct {
	t       *testing.T
	home    string
	options Options
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, home: dir + "/home"}
	for _, file := range []string{
		"home/.ssh/id_ed25519", "home/.config/garraia/mcp.json", "home/.nvm/v20/bin/node", "home/tools/bin/tool",
		"home/project/package.json", "home/project/build/index.js", "home/project/node_modules/x/index.js",
		"home/notes/a.txt", "home/.npmrc", "state/run/1/private/other/home/x", "data/a.db", "data/b.db",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.options = Options{
		Host:       envbuild.Host{Env: []string{"PATH=/usr/bin:/bin", "HOME=" + p.home}},
		PrivateDir: dir + "/state/run/1/private",
		Own:        []string{p.home + "/.config/garraia", dir + "/state"},
		abilities: func() sandbox.Abilities {
			return sandbox.Abilities{Confinement: sandbox.Confinement{Level: sandbox.LevelNamespaces, Landlock: 7}}
		},
	}
	return p
}

// cell makes what confines a server; HOME and DATA stand for folders in its command line.
func (p *place) cell(change func(e *mcpconfig.Server), words ...string) (*cell, error) {
	p.t.Helper()
	for i := range words {
		words[i] = p.path(words[i])
	}
	e := entryNamed("s")
	e.Command, e.Args, e.Sandbox.Asked = words[0], words[1:], true
	if change != nil {
		change(e)
	}
	w := newWarden(&p.options)
	entry := EntryOf(e, filepath.Dir(p.home))
	entry.Private = w.privateOf(e)
	spec, err := envbuild.Build(p.t.Context(), entry, p.options.Host, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return w.cellOf(e, spec)
}

func (p *place) path(text string) string {
	return strings.NewReplacer("HOME", p.home, "DATA", filepath.Dir(p.home)+"/data").Replace(text)
}

func (p *place) paths(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, p.path(text))
	}
	return list
}

// What a command line opens: its program to read, the paths that it is told to work on to
// write, and nothing of what no argument opens.
func TestWhatACommandLineOpens(t *testing.T) {
	for name, test := range map[string]struct {
		words       []string
		read, write []string
		closed      string // in the warning
	}{
		"the system's program":  {words: []string{"/bin/sh", "-c", "true"}},
		"a folder":              {words: []string{"/bin/sh", "HOME/notes"}, read: []string{"HOME/notes"}},
		"a folder of a tool":    {words: []string{"/bin/ls", "HOME/notes"}, write: []string{"HOME/notes"}},
		"an option":             {words: []string{"/bin/ls", "--db=DATA/a.db"}, write: []string{"DATA/a.db"}},
		"a url":                 {words: []string{"/bin/ls", "file://DATA/a.db"}, write: []string{"DATA/a.db"}},
		"what isn't there":      {words: []string{"/bin/ls", "DATA/new.db", "notes", "--x", "-"}},
		"a relative path":       {words: []string{"/bin/ls", "data/a.db"}},
		"the root":              {words: []string{"/bin/ls", "/"}, closed: `"/"`},
		"the home":              {words: []string{"/bin/ls", "HOME"}, closed: "/home"},
		"above the home":        {words: []string{"/bin/ls", "HOME/.."}, closed: "is not opened"},
		"keys":                  {words: []string{"/bin/ls", "HOME/.ssh/id_ed25519"}, closed: ".ssh"},
		"settings with keys":    {words: []string{"/bin/ls", "HOME/.config"}, closed: ".config"},
		"garra's own":           {words: []string{"/bin/ls", "HOME/.config/garraia/mcp.json"}, closed: "garraia"},
		"another server's":      {words: []string{"/bin/ls", "HOME/../state/run/1/private/other"}, closed: "other"},
		"the system":            {words: []string{"/bin/ls", "/etc"}, closed: "/etc"},
		"an installed program":  {words: []string{"HOME/tools/bin/tool"}, read: []string{"HOME/tools"}},
		"a version manager's":   {words: []string{"HOME/.nvm/v20/bin/node"}, read: []string{"HOME/.nvm"}},
		"a program by its path": {words: []string{"DATA/a.db"}, read: []string{"DATA"}},
		"a script": {
			words: []string{"HOME/.nvm/v20/bin/node", "HOME/project/build/index.js", "DATA/a.db"},
			read:  []string{"HOME/.nvm", "HOME/project"}, write: []string{"DATA/a.db"},
		},
		"a script of a dependency": {
			words: []string{"HOME/.nvm/v20/bin/node", "--no-warnings", "HOME/project/node_modules/x/index.js"},
			read:  []string{"HOME/.nvm", "HOME/project/node_modules"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c, err := p.cell(nil, test.words...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p.paths(test.read), c.policy.Read); diff != "" {
				t.Errorf("to read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(p.paths(test.write), c.policy.Write); diff != "" {
				t.Errorf("to write (-want +got):\n%s", diff)
			}
			warned := strings.Join(c.warnings, "\n")
			if (test.closed != "") != (warned != "") || !strings.Contains(warned, test.closed) {
				t.Errorf("warnings: %q, want one of %q", warned, test.closed)
			}
		})
	}
}

// A link to a key is a key.
func TestALinkToWhatStaysClosed(t *testing.T) {
	p := newPlace(t)
	if err := os.Symlink(p.home+"/.ssh", p.home+"/notes/link"); err != nil {
		t.Fatal(err)
	}
	c, err := p.cell(nil, "/bin/ls", "HOME/notes/link")
	if err != nil || len(c.policy.Write) > 0 || len(c.warnings) != 1 {
		t.Errorf("opened %q, %v, with %q", c.policy.Write, err, c.warnings)
	}
}

func TestWhatListsOpen(t *testing.T) {
	p := newPlace(t)
	c, err := p.cell(func(e *mcpconfig.Server) {
		e.Sandbox.Read = []string{"~/.ssh", "data/nothing", "${HOME}/not*"}
		e.Sandbox.Write = []string{p.path("DATA/*.db")}
	}, "/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.paths([]string{"HOME/.ssh", "HOME/notes"}), c.policy.Read); diff != "" {
		t.Errorf("to read (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.paths([]string{"DATA/a.db", "DATA/b.db"}), c.policy.Write); diff != "" {
		t.Errorf("to write (-want +got):\n%s", diff)
	}
	contains(t, strings.Join(c.warnings, "\n"), "data/nothing", "sandbox.read", "isn't there")
	if want := p.home + "/notes"; c.links["notes"] != want {
		t.Errorf("in the private home: %v, want notes", c.links)
	}
}

func TestNoListOpensWhatIsGarras(t *testing.T) {
	for _, path := range []string{"HOME/.config/garraia", "HOME/../state/run/1/private/other/home"} {
		p := newPlace(t)
		_, err := p.cell(func(e *mcpconfig.Server) { e.Sandbox.Read = []string{p.path(path)} }, "/bin/ls")
		if err == nil || !strings.Contains(err.Error(), errGarrasOwn.Error()) {
			t.Errorf("%s: got %v, want %v", path, err, errGarrasOwn)
		}
	}
	// What is above it is opened without it.
	p := newPlace(t)
	c, err := p.cell(func(e *mcpconfig.Server) { e.Sandbox.Read = []string{"~"} }, "/bin/ls")
	if err != nil || !slices.Contains(c.policy.Read, p.home) ||
		!slices.Contains(c.policy.Hidden, p.home+"/.config/garraia") {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestWhereAServerWorks(t *testing.T) {
	p := newPlace(t)
	for cwd, want := range map[string]string{
		"":             filepath.Join(p.options.PrivateDir, "s", "home"),
		"HOME/project": "HOME/project",
		"HOME":         filepath.Join(p.options.PrivateDir, "s", "home"),
	} {
		c, err := p.cell(func(e *mcpconfig.Server) { e.Cwd = p.path(cwd) }, "/bin/ls")
		if err != nil || c.dir != p.path(want) {
			t.Errorf("cwd %q: it works in %q, %v; want %q", cwd, c.dir, err, p.path(want))
		}
	}
}

func TestModes(t *testing.T) {
	able := func(level sandbox.Level) func() sandbox.Abilities {
		return func() sandbox.Abilities {
			return sandbox.Abilities{
				Confinement: sandbox.Confinement{Level: level, Landlock: 7},
				Lacking:     []string{"no namespaces: they are forbidden"},
			}
		}
	}
	const namespaces = sandbox.LevelNamespaces
	for name, test := range map[string]struct {
		level   sandbox.Level
		mode    mcpconfig.SandboxMode
		network mcpconfig.NetworkMode
		want    sandbox.Level // empty: no start
		says    string
	}{
		"the best":              {namespaces, mcpconfig.SandboxBestEffort, "", namespaces, ""},
		"what there is":         {sandbox.LevelBasic, mcpconfig.SandboxBestEffort, "", sandbox.LevelBasic, ""},
		"nothing there":         {sandbox.LevelOff, mcpconfig.SandboxBestEffort, "", "off", ""},
		"nothing wanted":        {namespaces, mcpconfig.SandboxOff, "", "off", ""},
		"required":              {namespaces, mcpconfig.SandboxRequired, "all", namespaces, ""},
		"required, less":        {sandbox.LevelLandlock, mcpconfig.SandboxRequired, "none", sandbox.LevelLandlock, ""},
		"required, too little":  {sandbox.LevelBasic, mcpconfig.SandboxRequired, "none", "", "they are forbidden"},
		"required, nothing":     {sandbox.LevelOff, mcpconfig.SandboxRequired, "none", "", "files.read"},
		"required, the network": {namespaces, mcpconfig.SandboxRequired, "", namespaces, ""},
		"required, a network that can't be confined": {
			sandbox.LevelLandlock, mcpconfig.SandboxRequired, "", "", "sandbox.network",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.options.abilities = able(test.level)
			c, err := p.cell(func(e *mcpconfig.Server) {
				e.Sandbox.Mode, e.Sandbox.Network.Mode = test.mode, test.network
			}, "/bin/ls")
			if test.want == "" {
				f := confineFailure("s", err)
				contains(t, f.Message+"; "+f.Fix, "must be confined", test.says, "best-effort")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.policy.Level; got != test.want && (got != "" || test.want != sandbox.LevelOff) {
				t.Errorf("confined at %q, want %q", got, test.want)
			}
			if private := c.private != nil; private != (test.want != sandbox.LevelOff) {
				t.Errorf("private folders: %v", private)
			}
		})
	}
}

// The server may have put anything into its private home.
func TestFurnishingFollowsNoLink(t *testing.T) {
	p := newPlace(t)
	c, err := p.cell(nil, "/bin/ls", "HOME/notes")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.furnish(); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(c.private.Home, "notes")
	if got, err := os.Readlink(link); err != nil || got != p.home+"/notes" {
		t.Fatalf("the private home's notes: %q, %v", got, err)
	}
	deep, err := p.cell(func(e *mcpconfig.Server) { e.Sandbox.Read = []string{"~/project/build"} }, "/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.path("DATA"), filepath.Join(c.private.Home, "project")); err != nil {
		t.Fatal(err)
	}
	if err := deep.furnish(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(p.path("DATA/build")); err == nil {
		t.Error("a link of the server's led garra out of the private home")
	}
}

// A folder that is opened is one link in the private home, whatever else is named in it.
func TestLinksIntoTheHome(t *testing.T) {
	p := newPlace(t)
	c, err := p.cell(nil, "/bin/ls", "HOME/notes/a.txt", "HOME/notes", "HOME/tools/bin/tool")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"notes": p.path("HOME/notes"), "tools/bin/tool": p.path("HOME/tools/bin/tool")}
	if diff := cmp.Diff(want, c.links); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// needSandbox skips a test where servers can't be kept from files.
func needSandbox(t *testing.T) {
	t.Helper()
	if level := sandbox.Probe().Level; level.Below(sandbox.LevelLandlock) {
		t.Skipf("needs a sandbox of files; this machine has %s", level)
	}
}

// What a server is denied is told, with what to add, while it runs and when it has ended.
func TestDenialsAreTold(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	r := newRig(t)
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.apply(map[string]fields{"s": {
		"command": "/bin/sh", "args": []string{"-c", "cat " + secret + "; exit 3"}, "maxRestarts": 0,
		"sandbox": args{},
	}})
	status := r.state("s", source.Parked)
	contains(t, status.LastError.Message, "the sandbox denied it", secret)
	contains(t, status.LastError.Fix, `"sandbox": {"read": [`, secret)
	if r.Saw("was denied") == "" {
		t.Error("nobody was told while it ran")
	}
}

func TestWordsOfDenials(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"Error: EACCES: permission denied, open '" + file + "'",
		"Error: ENOENT: no such file or directory, open '" + file + "'",
		"PermissionError: [Errno 13] Permission denied: '" + file + "'",
		"FileNotFoundError: [Errno 2] No such file or directory: '" + file + "'",
		"open " + file + ": permission denied",
		"cat: " + file + ": Permission denied",
		"sh: 1: cannot create " + file + ": Read-only file system",
		`{"path":"` + file + `","error":"EROFS"}`,
	} {
		d := &denials{cell: &cell{private: &envbuild.Private{Home: "/h"}}}
		found := slices.ContainsFunc(pathIn.FindAllStringSubmatch(line, -1), func(match []string) bool {
			return d.note(match[1] + match[2] + match[3])
		})
		if !found || !refusal.MatchString(line) || d.paths[0] != file {
			t.Errorf("%q: found %q", line, d.paths)
		}
	}
	d := &denials{cell: &cell{
		private: &envbuild.Private{Home: "/h"}, policy: sandbox.Policy{Write: []string{dir}},
	}}
	for _, path := range []string{file, "/no/such/folder/file", "/usr/lib/x", "/proc/1/environ"} {
		if d.note(path) {
			t.Errorf("%s is told as denied", path)
		}
	}
}

// What people see of a server's sandbox.
func TestSandboxIsShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := filepath.Join(r.dir, "notes")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s := r.only(misbehaving("--tools", "3").With("sandbox", args{"write": []string{"~/notes"}}))
	got := s.Status().Sandbox
	if runtime.GOOS != "linux" {
		if got.Effective != "off" || len(got.Unenforced) == 0 {
			t.Errorf("%+v", got)
		}
		return
	}
	if got.Effective != string(sandbox.Probe().Level) || !slices.Contains(got.Write, folder) ||
		got.Network != "internet" {
		t.Errorf("%+v", got)
	}
	open := strings.Contains(strings.Join(got.Unenforced, "\n"), "network.internet: it can connect to the host's own")
	if open == (got.Effective == string(sandbox.LevelNamespaces)) {
		t.Errorf("at %s it is said that the network is open: %v, %q", got.Effective, open, got.Unenforced)
	}
	if env := s.Status().Env.From; env["HOME"] != "sandbox" || env["TMPDIR"] != "sandbox" {
		t.Errorf("its environment: %v", env)
	}
}

// A connection that is refused is told, with what would open it.
func TestRefusedConnectionsAreTold(t *testing.T) {
	t.Parallel()
	what := sandbox.Refusal{Host: "db.internal", Port: 5432, Why: "it is not on the list", More: 2}
	listed := (&cell{policy: sandbox.Policy{Network: sandbox.NetworkListed}}).remedy(&what)
	contains(t, what.String()+"; "+listed, `connect to "db.internal:5432"`, "not on the list", "2 more",
		`add "db.internal:5432" to sandbox.network`)
	name := sandbox.Refusal{Host: "a.example", Why: "none of its addresses may be reached"}
	internet := (&cell{policy: sandbox.Policy{Network: sandbox.NetworkInternet}}).remedy(&name)
	contains(t, name.String()+"; "+internet, `asked for the name "a.example"`, `lists "a.example:PORT"`)
}
