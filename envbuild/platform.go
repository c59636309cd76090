// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"path"
	"strings"
)

// platform knows how names and paths are written on the child's system. It is
// a value, not a build tag, so that the rules of Windows are tested anywhere.
type platform struct {
	windows bool
	goos    string
}

func newPlatform(goos string) platform {
	return platform{windows: goos == "windows", goos: goos}
}

// fold returns the form in which two names of the same variable are equal.
func (p platform) fold(name string) string {
	if p.windows {
		return strings.ToUpper(name)
	}
	return name
}

// hasSeparator tells whether a command is a path.
func (p platform) hasSeparator(command string) bool {
	if p.windows {
		return strings.ContainsAny(command, `/\:`)
	}
	return strings.Contains(command, "/")
}

// isAbs tells whether name means the same file in every folder.
func (p platform) isAbs(name string) bool {
	if !p.windows {
		return strings.HasPrefix(name, "/")
	}
	name = strings.ReplaceAll(name, `\`, "/")
	if strings.HasPrefix(name, "//") {
		return true
	}
	return len(name) >= 3 && name[1] == ':' && name[2] == '/'
}

// join puts a path together and cleans it.
func (p platform) join(folder string, names ...string) string {
	if !p.windows {
		return path.Join(append([]string{folder}, names...)...)
	}
	parts := append([]string{strings.TrimRight(folder, `\/`)}, names...)
	return strings.ReplaceAll(strings.Join(parts, `\`), "/", `\`)
}

// from returns name as seen from folder.
func (p platform) from(folder, name string) string {
	if p.isAbs(name) || folder == "" {
		return name
	}
	return p.join(folder, name)
}

// listSeparator stands between the folders of PATH.
func (p platform) listSeparator() string {
	if p.windows {
		return ";"
	}
	return ":"
}

// folders returns the absolute folders of a PATH, each once. A relative one,
// or an empty one, would mean another folder in every working directory.
func (p platform) folders(list string) []string {
	var folders []string
	seen := make(map[string]bool)
	for folder := range strings.SplitSeq(list, p.listSeparator()) {
		if p.windows {
			folder = strings.Trim(folder, `"`)
		}
		if !p.isAbs(folder) || seen[p.fold(folder)] {
			continue
		}
		seen[p.fold(folder)] = true
		folders = append(folders, folder)
	}
	return folders
}

// root is the working directory of last resort.
func (p platform) root() string {
	if p.windows {
		return `C:\`
	}
	return "/"
}

// ext returns the extension of a file's name, in lower case.
func (p platform) ext(name string) string {
	return strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/")))
}
