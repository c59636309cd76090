// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// A warden confines the servers of one configuration.
type warden struct {
	// private is where each server has a folder of its own.
	private string
	// own are garra's folders and files, which no server gets.
	own       []string
	home      string // of the user
	abilities func() sandbox.Abilities
}

func newWarden(o *Options) *warden {
	w := &warden{private: o.PrivateDir, home: o.Host.Home, abilities: o.abilities}
	if home, _ := o.Host.Lookup("HOME"); filepath.IsAbs(home) {
		w.home = home
	}
	if w.abilities == nil {
		w.abilities = sandbox.Probe
	}
	for _, folder := range append([]string{o.PrivateDir}, o.Own...) {
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			w.own = append(w.own, real)
		}
		w.own = append(w.own, filepath.Clean(folder))
	}
	return w
}

// privateOf returns the folders that a server has for itself, nil for one that isn't
// confined.
func (w *warden) privateOf(e *mcpconfig.Server) *envbuild.Private {
	if !e.Sandbox.Asked || e.Sandbox.Mode == mcpconfig.SandboxOff || w.abilities().Level == sandbox.LevelOff {
		return nil
	}
	folder := filepath.Join(w.private, e.Name)
	return &envbuild.Private{
		Home: filepath.Join(folder, "home"), Cache: filepath.Join(folder, "cache"), Temp: filepath.Join(folder, "tmp"),
	}
}

// A cell is what confines one run of a server.
type cell struct {
	policy   sandbox.Policy
	gaps     []sandbox.Claim // that the machine, or this version of garra, leaves
	private  *envbuild.Private
	links    map[string]string // in the private home, by their paths in it
	dir      string            // working directory
	warnings []string
	refused  func(sandbox.Refusal) // is told of connections that the policy didn't let it have
}

// errGarrasOwn is why no entry opens a folder.
var errGarrasOwn = errors.New("garra keeps its own files there, and those of other servers")

// cellOf makes what confines a run. An entry that asks for what no server gets, or that
// must be confined and can't be, is an error.
func (w *warden) cellOf(e *mcpconfig.Server, spec *envbuild.Spec) (*cell, error) {
	c := &cell{private: w.privateOf(e), dir: spec.Dir}
	found := w.abilities()
	c.policy = sandbox.Policy{
		Network: networkOf(&e.Sandbox.Network), Hosts: e.Sandbox.Network.Hosts,
		Browser: e.Sandbox.Profile == mcpconfig.ProfileBrowser,
	}
	if c.private == nil {
		found.Confinement = sandbox.Confinement{Level: sandbox.LevelOff}
	}
	c.gaps = c.policy.Gaps(&found.Confinement)
	if e.Sandbox.Mode == mcpconfig.SandboxRequired {
		if err := c.wanting(e, &found); err != nil {
			return nil, err
		}
	}
	if c.private == nil {
		return c, nil
	}
	c.policy.Level, c.policy.Hidden = found.Level, w.own
	return c, w.open(c, e, spec)
}

// networkOf is what an entry lets a server connect to.
func networkOf(n *mcpconfig.Network) sandbox.NetworkMode {
	switch n.Mode {
	case mcpconfig.NetworkNone:
		return sandbox.NetworkNone
	case mcpconfig.NetworkAll:
		return sandbox.NetworkAll
	case mcpconfig.NetworkListed:
		return sandbox.NetworkListed
	case mcpconfig.NetworkDefault:
	}
	return sandbox.NetworkInternet
}

// wanting returns why a server that must be confined can't be.
func (c *cell) wanting(e *mcpconfig.Server, found *sandbox.Abilities) error {
	var missing, remedies []string
	for _, gap := range c.gaps {
		if gap.Required {
			missing = append(missing, gap.Gap())
			if strings.HasPrefix(gap.Name, "network.") {
				remedies = append(remedies, "set sandbox.network to none or all")
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if len(remedies) < len(missing) {
		remedies = append(remedies, "run garra where "+strings.Join(append([]string{
			"Linux offers user namespaces or Landlock",
		}, found.Lacking...), "; "))
	}
	remedies = append(remedies, "set sandbox.mode to best-effort")
	return &confineError{
		message: fmt.Sprintf("server %q must be confined (sandbox.mode is required), and isn't: %s",
			e.Name, strings.Join(missing, "; ")),
		fix: strings.Join(remedies, ", or "),
	}
}

// A confineError is why a server is not started.
type confineError struct{ message, fix string }

func (e *confineError) Error() string { return e.message }

// open fills in which files the server may touch.
func (w *warden) open(c *cell, e *mcpconfig.Server, spec *envbuild.Spec) error {
	fence := newFence(w.home, w.own)
	s := &survey{fence: fence, spec: spec}
	if e.Cwd != "" {
		s.cwd = spec.Dir
	}
	s.look()
	for _, path := range s.closed {
		c.warn("server %q: the argument %q is not opened to it, since keys, settings, garra's files or all of a home "+
			"folder are there; add it to sandbox.write or sandbox.read if the server is to have it", e.Name, path)
	}
	for _, list := range []struct {
		field string
		paths []string
		to    *[]string
	}{{"read", spec.Read, &s.read}, {"write", spec.Write, &s.write}} {
		for _, pattern := range list.paths {
			paths, err := expandGlob(pattern)
			if err != nil || len(paths) == 0 {
				c.warn("server %q: %q in sandbox.%s isn't there, so it opens nothing", e.Name, pattern, list.field)
			}
			for _, path := range paths {
				if fence.keepsOwn(path) {
					return &confineError{
						message: fmt.Sprintf("server %q: sandbox.%s names %q: %v",
							e.Name, list.field, path, errGarrasOwn),
						fix: "remove it",
					}
				}
				*list.to = append(*list.to, path)
			}
		}
	}
	c.place(e, s)
	c.link(w.home)
	return nil
}

// place completes the policy with the private folders, and with a folder to work in.
func (c *cell) place(e *mcpconfig.Server, s *survey) {
	slices.Sort(s.read)
	slices.Sort(s.write)
	c.policy.Read, c.policy.Write = slices.Compact(s.read), slices.Compact(s.write)
	opened := slices.ContainsFunc(slices.Concat(c.policy.Read, c.policy.Write), func(path string) bool {
		return isBelow(c.dir, path)
	})
	if s.cwd != "" && !opened {
		c.warn("server %q: its cwd %q is not opened to it, so it works in its private home; "+
			"add it to sandbox.write or sandbox.read if the server is to have it", e.Name, c.dir)
		c.dir = c.private.Home
	}
}

// expandGlob returns the files that a pattern names, which needs no special characters.
func expandGlob(pattern string) ([]string, error) {
	if _, err := os.Stat(pattern); err == nil {
		return []string{filepath.Clean(pattern)}, nil
	}
	return filepath.Glob(pattern)
}

// link notes which opened paths are below the user's home, so that the server finds them
// by the same names in its own.
func (c *cell) link(home string) {
	c.links = make(map[string]string)
	paths := slices.Concat(c.policy.Read, c.policy.Write)
	slices.Sort(paths) // a folder before what is in it, which needs no link of its own then
	for _, path := range paths {
		name, err := filepath.Rel(home, path)
		if err != nil || home == "" || !filepath.IsLocal(name) || name == "." {
			continue
		}
		if !c.linked(path) {
			c.links[name] = path
		}
	}
}

// linked reports whether a path is in a folder that has a link.
func (c *cell) linked(path string) bool {
	for _, folder := range c.links {
		if isBelow(path, folder) {
			return true
		}
	}
	return false
}

func (c *cell) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// furnish makes the private folders, and the links in the private home. The server may
// have put anything in there, which is not followed.
func (c *cell) furnish() error {
	if c.private == nil {
		return nil
	}
	for _, folder := range []string{c.private.Home, c.private.Cache, c.private.Temp} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("making a private folder: %w", err)
		}
	}
	home, err := os.OpenRoot(c.private.Home)
	if err != nil {
		return fmt.Errorf("opening the private home: %w", err)
	}
	defer home.Close()
	for name, path := range c.links {
		if old, err := home.Readlink(name); err == nil && old == path {
			continue
		}
		err := home.MkdirAll(filepath.Dir(name), 0o700)
		if err == nil {
			err = home.Symlink(path, name)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			c.warn("the private home can't have %q: %v", name, err)
		}
	}
	return nil
}

// confine adds what confines the run to what is to be started.
func (c *cell) confine(spec *sandbox.Spec) {
	spec.Dir, spec.Policy, spec.Refused = c.dir, c.policy, c.refused
	if c.private != nil {
		spec.Policy.Write = append(slices.Clone(c.policy.Write), c.private.Home, c.private.Cache, c.private.Temp)
	}
}

// remedy says how a server may have what it was refused.
func (c *cell) remedy(what *sandbox.Refusal) string {
	port := "PORT"
	if what.Port != 0 {
		port = strconv.Itoa(int(what.Port))
	}
	if c.policy.Network == sandbox.NetworkListed {
		return fmt.Sprintf("add %q to sandbox.network if it is to have that", net.JoinHostPort(what.Host, port))
	}
	return fmt.Sprintf("sandbox.network opens it if it lists %q, and then all else that the server needs",
		net.JoinHostPort(what.Host, port))
}

// status is what people may see of it; clean takes secrets out of a text.
func (c *cell) status(of sandbox.Confinement, clean func(string) string) source.Sandbox {
	s := source.Sandbox{Effective: string(of.Level), Network: string(c.policy.Network)}
	for _, path := range c.policy.Read {
		s.Read = append(s.Read, clean(path))
	}
	for _, path := range c.policy.Write {
		s.Write = append(s.Write, clean(path))
	}
	if c.private != nil {
		s.Home = c.private.Home
	}
	for _, gap := range c.gaps {
		s.Unenforced = append(s.Unenforced, gap.Gap())
	}
	return s
}
