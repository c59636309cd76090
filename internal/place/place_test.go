// SPDX-License-Identifier: Apache-2.0

package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// environment returns a getenv of some variables, with what stands for a home.
func environment(home string, variables map[string]string) func(string) string {
	return func(name string) string {
		return strings.ReplaceAll(variables[name], "~", home)
	}
}

func TestFind(t *testing.T) {
	home := t.TempDir()
	for name, tt := range map[string]struct {
		asked         string
		env           map[string]string
		folders       []string // that exist in the home
		config, state string
	}{
		"usual": {
			env: map[string]string{"HOME": "~"}, config: "~/.config/garraia", state: "~/.local/state/garraia",
		},
		"flag first": {
			asked: "/asked", env: map[string]string{"HOME": "~", "GARRAIA_CONFIG_DIR": "/env"},
			config: "/asked", state: "~/.local/state/garraia",
		},
		"variable": {
			env:    map[string]string{"HOME": "~", "GARRAIA_CONFIG_DIR": "/env/../env", "XDG_CONFIG_HOME": "/xdg"},
			config: "/env", state: "~/.local/state/garraia",
		},
		"XDG": {
			env:    map[string]string{"HOME": "~", "XDG_CONFIG_HOME": "/xdg/c", "XDG_STATE_HOME": "/xdg/s"},
			config: "/xdg/c/garraia", state: "/xdg/s/garraia",
		},
		"XDG must be absolute": {
			env:    map[string]string{"HOME": "~", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "s"},
			config: "~/.config/garraia", state: "~/.local/state/garraia",
		},
		"legacy": {
			env: map[string]string{"HOME": "~"}, folders: []string{".garraia"},
			config: "~/.garraia", state: "~/.local/state/garraia",
		},
		"legacy beside XDG that isn't there": {
			env: map[string]string{"HOME": "~", "XDG_CONFIG_HOME": "~/x"}, folders: []string{".garraia"},
			config: "~/.garraia", state: "~/.local/state/garraia",
		},
		"legacy loses": {
			env: map[string]string{"HOME": "~"}, folders: []string{".garraia", ".config/garraia"},
			config: "~/.config/garraia", state: "~/.local/state/garraia",
		},
		"a legacy file is no folder": {
			env: map[string]string{"HOME": "~"}, folders: []string{".other"},
			config: "~/.config/garraia", state: "~/.local/state/garraia",
		},
		"state variable": {
			env:    map[string]string{"HOME": "~", "GARRAIA_STATE_DIR": "/state", "XDG_STATE_HOME": "/xdg"},
			config: "~/.config/garraia", state: "/state",
		},
		"no home needed": {
			env:    map[string]string{"GARRAIA_CONFIG_DIR": "/c", "GARRAIA_STATE_DIR": "/s"},
			config: "/c", state: "/s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(home, strings.ReplaceAll(name, " ", "_"))
			for _, folder := range append(tt.folders, "") {
				if err := os.MkdirAll(filepath.Join(home, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p, err := Find(tt.asked, environment(home, tt.env))
			if err != nil {
				t.Fatal(err)
			}
			config, state := strings.Replace(tt.config, "~", home, 1), strings.Replace(tt.state, "~", home, 1)
			if p.ConfigDir != config || p.StateDir != state {
				t.Errorf("got %s and %s, want %s and %s", p.ConfigDir, p.StateDir, config, state)
			}
			if p.Vault != filepath.Join(config, "vault.age") || p.AuditDir != filepath.Join(p.RunDir, "audit") ||
				filepath.Dir(p.RunDir) != filepath.Join(state, "run") {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestRelativeFoldersBecomeAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	p, err := Find("config", environment("", map[string]string{"GARRAIA_STATE_DIR": "state"}))
	if err != nil || !filepath.IsAbs(p.ConfigDir) || !filepath.IsAbs(p.StateDir) {
		t.Errorf("%+v %v", p, err)
	}
}

// One folder has one run folder, under all of its names, also before it exists.
func TestRunFolderFollowsTheRealPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	env := environment(dir, map[string]string{"HOME": "~"})
	find := func(path ...string) string {
		t.Helper()
		p, err := Find(filepath.Join(append([]string{dir}, path...)...), env)
		if err != nil {
			t.Fatal(err)
		}
		return p.RunDir
	}
	if find("real") != find("link") || find("real", "new") != find("link", "new") {
		t.Error("a link has a run folder of its own")
	}
	if find("real") == find("other") || find("real") == find("real", "new") {
		t.Error("two folders share a run folder")
	}
}

// A gateway whose configuration folder's path leads elsewhere lends its run folder.
func TestLend(t *testing.T) {
	home := t.TempDir()
	find := func(config string) Places {
		t.Helper()
		env := map[string]string{"HOME": home, "XDG_RUNTIME_DIR": home}
		env["GARRAIA_STATE_DIR"] = filepath.Join(home, strings.Repeat("s", maxSocketPath)) // too long for a socket
		p, err := Find(filepath.Join(home, config), environment(home, env))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, own := find("a"), find("own")
	for _, p := range []Places{a, own} {
		if err := p.Make(); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := a.Lend(find("own")); ok || err != nil {
		t.Errorf("lending to one that has its own: %v, %v", ok, err)
	}
	for range 2 {
		if ok, err := a.Lend(find("b")); !ok || err != nil {
			t.Skipf("lending: %v, %v", ok, err) // systems exist where users can't make links
		}
	}
	if b := find("b"); realPath(b.RunDir) != realPath(a.RunDir) || b.Socket != a.Socket {
		t.Errorf("it was lent %+v, want what %+v has", b, a)
	} else if err := b.Make(); err != nil {
		t.Error(err)
	}
	if was, err := find("b").Unlend(); !was || err != nil {
		t.Errorf("taking it back: %v, %v", was, err)
	}
	if was, err := a.Unlend(); was || err != nil {
		t.Errorf("taking back what wasn't lent: %v, %v", was, err)
	}
	if b := find("b"); b.Socket == a.Socket {
		t.Error("it is still lent")
	}
}

func TestSocketPathsThatFit(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	state := "/" + strings.Repeat("s", maxSocketPath-len("//run/0123456789abcdef/run.sock"))
	for _, tt := range []struct {
		state, runtime, want string
	}{
		{state, "/run/user/1", state + "/run/"},
		{state + "s", "/run/user/1", "/run/user/1/garraia/"},
		{state + "s", "", temp + "/garraia-"},
	} {
		p, err := Find("/config", environment("", map[string]string{
			"GARRAIA_STATE_DIR": tt.state, "XDG_RUNTIME_DIR": tt.runtime,
		}))
		if err != nil || !strings.HasPrefix(p.Socket, tt.want) {
			t.Errorf("state folder of %d bytes: %s, %v", len(tt.state), p.Socket, err)
		}
	}
}

func TestMakeIsPrivate(t *testing.T) {
	dir := t.TempDir()
	p := Places{
		StateDir: filepath.Join(dir, "a", "state"), RunDir: filepath.Join(dir, "a", "state", "run", "x"),
		Socket: filepath.Join(dir, "elsewhere", "x.sock"),
	}
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{p.StateDir, p.RunDir, filepath.Dir(p.Socket)} {
		if info, err := os.Stat(made); err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", made, info, err)
		}
	}
	if err := p.Make(); err != nil {
		t.Errorf("again: %v", err)
	}
}

// Another user could have laid a link or a folder into the temporary folder.
func TestMakeRefusesAForeignSocketFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	p := Places{StateDir: dir, RunDir: filepath.Join(dir, "run"), Socket: filepath.Join(dir, "link", "x.sock")}
	if err := p.Make(); err == nil || !strings.Contains(err.Error(), "not a folder of yours") {
		t.Errorf("a link: %v", err)
	}
	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	foreign := filepath.Join(dir, "foreign")
	if err := os.Mkdir(foreign, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(foreign, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	p.Socket = filepath.Join(foreign, "x.sock")
	if err := p.Make(); err == nil || !strings.Contains(err.Error(), "not a folder of yours") {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if err := p.CheckSocket(); err == nil || !strings.Contains(err.Error(), "not a folder of yours") {
		t.Errorf("a socket in a folder of somebody else: %v", err)
	}
}

func TestCheckSocket(t *testing.T) {
	dir := t.TempDir()
	p := Places{RunDir: dir}
	for _, socket := range []string{
		filepath.Join(dir, "x.sock"), filepath.Join(t.TempDir(), "x.sock"),
		filepath.Join(dir, "not", "there", "x.sock"),
	} {
		p.Socket = socket
		if err := p.CheckSocket(); err != nil {
			t.Errorf("%s: %v", socket, err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Skip(err)
	}
	p.Socket = filepath.Join(link, "x.sock")
	if err := p.CheckSocket(); err == nil {
		t.Error("a link is a folder of one's own")
	}
}
