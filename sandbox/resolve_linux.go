// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A symlink is one that leads to a path of a policy.
type symlink struct{ at, target string }

// maxSymlinks is how many the kernel follows for a path (path_resolution(7)).
const maxSymlinks = 40

// resolve returns the path that an absolute path really is, and the symbolic links
// that lead there. Of a path that isn't there it is an error.
func resolve(path string) (real string, links []symlink, err error) {
	rest := strings.Split(filepath.Clean(path), "/")
	real = "/"
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if links = append(links, symlink{next, target}); len(links) > maxSymlinks {
			return "", nil, &os.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, links, nil
}

// A grant is one path of a policy, as it really is.
type grant struct {
	path  string
	write bool
	links []symlink // that lead to it
}

// resolveAll resolves the paths of a policy. What isn't there grants nothing, nor does
// what a link leads to that the server may have made itself: it would grant itself
// whatever it likes, from its next start on.
func resolveAll(read, write []string) (grants []grant) {
	for _, path := range read {
		if real, links, err := resolve(path); err == nil {
			grants = append(grants, grant{real, false, links})
		}
	}
	for _, path := range write {
		if real, links, err := resolve(path); err == nil {
			grants = append(grants, grant{real, true, links})
		}
	}
	trusted := slices.DeleteFunc(slices.Clone(grants), func(g grant) bool { return ownLinks(grants, g) })
	return trusted
}

// ownLinks reports whether a link to g is where the server may write.
func ownLinks(grants []grant, g grant) bool {
	return slices.ContainsFunc(g.links, func(link symlink) bool {
		return slices.ContainsFunc(grants, func(other grant) bool {
			return other.write && isBelow(link.at, other.path)
		})
	})
}

// isBelow reports whether a clean path is folder, or in it.
func isBelow(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
