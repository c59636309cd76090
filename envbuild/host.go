// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"cmp"
	"io/fs"
	"os"
	"os/user"
	"runtime"
	"strings"
)

// A Host is the system that garra runs on, as far as a child's environment
// depends on it.
type Host struct {
	// Env is garra's own environment, as NAME=value. Where a name comes twice
	// the first counts, as for getenv.
	Env []string
	// Home is the home folder for when HOME (USERPROFILE on Windows) is not set.
	Home string
	// GOOS is the system's name as in [runtime.GOOS]; "" is that of this binary.
	GOOS string
	// Files is where commands, folders and env files are looked for; nil is the
	// operating system's own.
	Files Files
}

// Files is a read-only view of a file system with absolute names. Its methods
// are those of package os.
type Files interface {
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Open(name string) (fs.File, error)
}

// SystemHost returns the host that this process runs on, with its environment
// as it is now.
func SystemHost() Host {
	home, err := os.UserHomeDir()
	if err != nil {
		if me, err := user.Current(); err == nil {
			home = me.HomeDir
		}
	}
	return Host{Env: os.Environ(), Home: home, GOOS: runtime.GOOS}
}

// osFiles are the operating system's files.
type osFiles struct{}

func (osFiles) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFiles) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (osFiles) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFiles) Open(name string) (fs.File, error)          { return os.Open(name) }

// setting is a variable of garra's own environment.
type setting struct{ name, value string }

// system is a Host made ready for questions.
type system struct {
	platform
	files    Files
	settings []setting      // in the order of Host.Env, each name once
	index    map[string]int // folded name to its place in settings
	home     string         // "" when unknown
	termux   bool
}

func newSystem(h Host) *system {
	goos := h.GOOS
	if goos == "" {
		goos = runtime.GOOS
	}
	s := &system{platform: newPlatform(goos), files: h.Files, index: make(map[string]int)}
	if s.files == nil {
		s.files = osFiles{}
	}
	for _, entry := range h.Env {
		name, value, ok := strings.Cut(entry, "=")
		if _, twice := s.index[s.fold(name)]; !ok || name == "" || twice {
			continue // Windows keeps the folder of each drive as "=C:=C:\\folder"
		}
		s.index[s.fold(name)] = len(s.settings)
		s.settings = append(s.settings, setting{name, value})
	}
	s.home = h.Home
	if home := s.get(s.homeVariable()); s.isAbs(home) {
		s.home = home
	}
	s.termux = !s.windows && strings.Contains(s.get("PREFIX"), "com.termux")
	return s
}

// Lookup returns a variable of the host's environment, and whether it is set.
func (h Host) Lookup(name string) (string, bool) {
	fold := newPlatform(cmp.Or(h.GOOS, runtime.GOOS)).fold
	for _, entry := range h.Env {
		if key, value, ok := strings.Cut(entry, "="); ok && fold(key) == fold(name) {
			return value, true
		}
	}
	return "", false
}

// lookup returns a variable of garra's environment and whether it is set.
func (s *system) lookup(name string) (string, bool) {
	i, ok := s.index[s.fold(name)]
	if !ok {
		return "", false
	}
	return s.settings[i].value, true
}

// get is lookup for where unset and empty are the same.
func (s *system) get(name string) string {
	value, _ := s.lookup(name)
	return value
}

func (s *system) homeVariable() string {
	if s.windows {
		return "USERPROFILE"
	}
	return "HOME"
}

// isFolder tells whether name is a folder, or a link to one.
func (s *system) isFolder(name string) bool {
	info, err := s.files.Stat(name)
	return err == nil && info.IsDir()
}
