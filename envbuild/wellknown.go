// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// wellKnown returns the folders, in order, where runtimes are installed that
// only an interactive shell has in its PATH. They need not exist.
func (s *system) wellKnown() []string {
	var folders []string
	switch {
	case s.windows:
		folders = s.wellKnownWindows()
	case s.termux:
		folders = append(s.wellKnownHome(), s.join(s.get("PREFIX"), "bin"))
	case s.goos == "darwin":
		folders = append(s.wellKnownHome(), "/usr/local/bin", "/opt/homebrew/bin", "/opt/local/bin")
	default:
		folders = append(s.wellKnownHome(), "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin")
	}
	if !s.windows && !s.termux {
		folders = append(folders, "/nix/var/nix/profiles/default/bin", "/run/current-system/sw/bin",
			"/usr/bin", "/bin")
	}
	return slices.DeleteFunc(folders, func(folder string) bool { return !s.isAbs(folder) })
}

// wellKnownHome are the folders in a user's home: what the user installed
// comes before version managers, and these before single runtimes.
func (s *system) wellKnownHome() []string {
	folders := []string{s.inHome(".local/bin"), s.inHome("bin")}
	if bin := s.nvmBin(); bin != "" {
		folders = append(folders, bin)
	}
	for _, root := range []string{
		s.get("FNM_DIR"), s.inHome(".local/share/fnm"), s.inHome("Library/Application Support/fnm"), s.inHome(".fnm"),
	} {
		if root != "" {
			folders = append(folders, s.join(root, "aliases/default/bin"))
		}
	}
	for _, name := range []string{
		".volta/bin", ".asdf/shims", ".local/share/mise/shims", ".nodenv/shims", "n/bin",
		".bun/bin", ".deno/bin", ".cargo/bin", ".pyenv/shims", "go/bin", ".nix-profile/bin",
	} {
		folders = append(folders, s.inHome(name))
	}
	return folders
}

// wellKnownWindows are the folders of installers on Windows.
func (s *system) wellKnownWindows() []string {
	var folders []string
	for _, place := range []struct{ variable, name string }{
		{"USERPROFILE", ".local/bin"},
		{"NVM_SYMLINK", ""},
		{"ProgramFiles", "nodejs"},
		{"APPDATA", "npm"},
		{"APPDATA", "fnm/aliases/default"},
		{"LOCALAPPDATA", "Volta/bin"},
		{"LOCALAPPDATA", "Microsoft/WinGet/Links"},
		{"LOCALAPPDATA", "mise/shims"},
		{"USERPROFILE", "scoop/shims"},
		{"ProgramData", "chocolatey/bin"},
		{"USERPROFILE", ".bun/bin"},
		{"USERPROFILE", ".deno/bin"},
		{"USERPROFILE", ".cargo/bin"},
		{"USERPROFILE", ".pyenv/pyenv-win/shims"},
	} {
		root := s.get(place.variable)
		if root == "" && place.variable == s.homeVariable() {
			root = s.home
		}
		switch {
		case root == "":
		case place.name == "":
			folders = append(folders, root)
		default:
			folders = append(folders, s.join(root, place.name))
		}
	}
	return folders
}

// inHome returns a path in the home folder, "" when there is no home.
func (s *system) inHome(name string) string {
	if s.home == "" {
		return ""
	}
	return s.join(s.home, name)
}

// nvmBin returns the folder of the Node.js version that nvm uses by default,
// or else of the newest installed one; "" without any.
func (s *system) nvmBin() string {
	root := s.get("NVM_DIR")
	if root == "" {
		root = s.inHome(".nvm")
	}
	if root == "" {
		return ""
	}
	versions := s.join(root, "versions/node")
	installed := s.versionsIn(versions)
	if len(installed) == 0 {
		return ""
	}
	version := newestMatch(installed, s.nvmAlias(s.join(root, "alias"), "default"))
	return s.join(versions, version, "bin")
}

// versionsIn returns the folders that are named for a version, the newest first.
func (s *system) versionsIn(folder string) []string {
	entries, err := s.files.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "v") {
			names = append(names, entry.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return compareVersions(b, a) })
	return names
}

// nvmAlias follows an alias of nvm to a version or a part of one. An alias is
// a file that holds a version or another alias, such as "lts/*" or "22".
func (s *system) nvmAlias(folder, name string) string {
	const maxHops = 5
	for range maxHops {
		if path.Clean("/"+name) != "/"+name {
			return "" // an alias never leaves its folder
		}
		text, err := s.readStart(s.join(folder, name), maxShebang)
		if err != nil {
			return name
		}
		name = strings.TrimSpace(string(text))
	}
	return name
}

// newestMatch returns the first of the versions, the newest first, that wanted
// names or begins: "22" and "v22.1" match "v22.1.0". Without a match it is the
// newest.
func newestMatch(versions []string, wanted string) string {
	wanted = "v" + strings.TrimPrefix(wanted, "v")
	for _, version := range versions {
		if version == wanted || strings.HasPrefix(version, wanted+".") {
			return version
		}
	}
	return versions[0]
}

// compareVersions orders names like "v22.1.0" by their numbers.
func compareVersions(a, b string) int {
	return slices.Compare(versionNumbers(a), versionNumbers(b))
}

func versionNumbers(version string) []int {
	var numbers []int
	for field := range strings.SplitSeq(strings.TrimPrefix(version, "v"), ".") {
		n, err := strconv.Atoi(field)
		if err != nil {
			n = -1 // a pre-release comes before every release
		}
		numbers = append(numbers, n)
	}
	return numbers
}
