// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/garraia/garra/envbuild"
)

// A survey finds out which files a server's program is made of, and which it is told to
// work on.
type survey struct {
	fence *fence
	spec  *envbuild.Spec
	cwd   string // of the entry; empty when it sets none

	read, write []string
	closed      []string // paths among the arguments that are not opened
}

// look goes over the command line.
func (s *survey) look() {
	s.addProgram(s.spec.Path)
	for _, folder := range filepath.SplitList(s.spec.Value("PATH")) {
		s.addSearched(folder)
	}
	for _, name := range certificates() {
		if path := s.spec.Value(name); filepath.IsAbs(path) && !isSystem(path) {
			s.addRead(path)
		}
	}
	if s.cwd != "" && !s.fence.keeps(s.cwd) { // where an entry has its server work
		s.write = append(s.write, s.cwd)
	}
	script := s.script()
	for i, arg := range s.spec.Args {
		path := s.pathIn(arg)
		switch {
		case i == 0 || path == "":
		case i == script:
			s.addPackage(path)
		case s.fence.keeps(path):
			s.closed = append(s.closed, path)
		default:
			s.write = append(s.write, path)
		}
	}
}

// certificates are the variables that name what a server trusts.
func certificates() []string {
	return []string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
}

// pathIn returns the path that is there and that an argument names, as "PATH",
// "--option=PATH" or "file://PATH"; empty when it names none. A relative one counts only
// where the entry says in which folder.
func (s *survey) pathIn(arg string) string {
	if strings.HasPrefix(arg, "-") {
		_, after, ok := strings.Cut(arg, "=")
		if !ok {
			return ""
		}
		arg = after
	}
	if u, err := url.Parse(arg); err == nil && u.Scheme == "file" {
		arg = u.Path
	}
	if !filepath.IsAbs(arg) {
		if s.cwd == "" || arg == "" {
			return ""
		}
		arg = filepath.Join(s.cwd, arg)
	}
	if _, err := os.Stat(arg); err != nil {
		return ""
	}
	return filepath.Clean(arg)
}

// interpreters are programs whose first argument without a dash is another program.
func interpreters() []string {
	return []string{
		"node", "nodejs", "bun", "deno", "tsx", "ts-node", "python", "ruby", "perl", "php", "sh", "bash", "dash",
	}
}

// script returns which argument is the program that an interpreter runs, 0 for none.
func (s *survey) script() int {
	name := strings.TrimRight(filepath.Base(s.spec.Path), "0123456789.")
	if !slices.Contains(interpreters(), name) {
		return 0
	}
	for i, arg := range s.spec.Args {
		if i > 0 && !strings.HasPrefix(arg, "-") && arg != "run" {
			return i
		}
	}
	return 0
}

// addRead opens a path to read, if it may be.
func (s *survey) addRead(path string) bool {
	if s.fence.keeps(path) {
		return false
	}
	s.read = append(s.read, path)
	return true
}

// addProgram opens the folder of an executable, with all that was installed with it.
func (s *survey) addProgram(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return // its start will say why
	}
	for _, path := range []string{path, real} {
		folder := filepath.Dir(path)
		switch manager := manager(folder); {
		case isSystem(path):
		case manager != "":
			s.read = append(s.read, manager)
		case filepath.Base(folder) == "bin" && !isShared(filepath.Dir(folder)) && s.addRead(filepath.Dir(folder)):
		case s.inModules(path):
		case !isShared(folder) && s.addRead(folder):
		default:
			s.read = append(s.read, path)
		}
	}
}

// addPackage opens what a script belongs to.
func (s *survey) addPackage(path string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	for _, path := range []string{path, real} {
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case s.inModules(path):
		case info.IsDir():
			s.addRead(path)
		case s.addRead(packageOf(path)):
		case !isShared(filepath.Dir(path)) && s.addRead(filepath.Dir(path)):
		default:
			s.read = append(s.read, path)
		}
	}
}

// inModules opens the outermost node_modules of a path, where its dependencies are, and
// reports whether there is one.
func (s *survey) inModules(path string) bool {
	before, _, ok := strings.Cut(path, "/node_modules/")
	return ok && s.addRead(before+"/node_modules")
}

// packageOf returns the innermost folder around a file that a package manager knows, else
// the root, which is never opened.
func packageOf(path string) string {
	for folder := filepath.Dir(path); folder != "/"; folder = filepath.Dir(folder) {
		for _, name := range packageFiles() {
			if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
				return folder
			}
		}
	}
	return "/"
}

// packageFiles are files by which package managers know a folder as theirs.
func packageFiles() []string {
	return []string{"package.json", "pyproject.toml", "setup.py", "deno.json", "Gemfile", "composer.json"}
}

// addSearched opens a folder in which programs are searched for.
func (s *survey) addSearched(folder string) {
	if !filepath.IsAbs(folder) || isSystem(folder) || s.fence.keeps(folder) {
		return
	}
	if manager := manager(folder); manager != "" {
		folder = manager
	}
	s.read = append(s.read, folder)
}

// managers are folders in which version managers and installers keep programs as a
// whole, usually in a home.
func managers() []string {
	return []string{
		".nvm", ".fnm", ".local/share/fnm", ".volta", ".asdf", ".local/share/mise", ".nodenv", ".bun", ".deno",
		".pyenv", ".local/share/uv", ".local/share/pipx", ".local/pipx", ".local/share/pnpm", ".rbenv",
		".sdkman", ".nix-profile", ".local/state/nix",
	}
}

// manager returns the folder of the version manager that a path is in, empty for none.
func manager(path string) string {
	for _, name := range managers() {
		if before, _, ok := strings.Cut(path+"/", "/"+name+"/"); ok {
			return before + "/" + name
		}
	}
	return ""
}

// isSystem reports whether every server may read a path anyway.
func isSystem(path string) bool {
	for _, folder := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store"} {
		if isBelow(path, folder) {
			return true
		}
	}
	return false
}

// isShared reports whether a folder holds what is of many owners and purposes.
func isShared(folder string) bool {
	shared := []string{"/", "/home", "/tmp", "/var", "/var/tmp", "/mnt", "/media", "/srv", "/data"}
	return slices.Contains(shared, folder)
}
