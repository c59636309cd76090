// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/source"
)

// denials finds out from what a server writes to standard error which files it missed.
// The kernel tells nobody else who isn't root.
type denials struct {
	cell *cell
	run  *lifecycle.Run
	home string // of the user

	mu    sync.Mutex // guards what follows
	paths []string   // in the order in which they were missed
}

// maxDenials is how many paths people are told of, of one run.
const maxDenials = 5

// refusal finds the words for a file that can't be used: of Node, of Python, of Go and
// the C library, and of shells; and the path that stands beside them.
var refusal = regexp.MustCompile(`EACCES|EPERM|EROFS|ENOENT|(?i:permission denied|operation not permitted|` +
	`read-only file system|no such file or directory)`)

// pathIn is an absolute path, in quotes or up to a blank or a colon.
var pathIn = regexp.MustCompile(`'(/[^']+)'|"(/[^"]+)"|(?:^|[\s(=:])(/[^\s'":,;)]+)`)

// hear looks at a line of standard error.
func (d *denials) hear(line string) {
	if d.cell.private == nil || !refusal.MatchString(line) {
		return
	}
	for _, match := range pathIn.FindAllStringSubmatch(line, -1) {
		path := match[1] + match[2] + match[3]
		if d.note(d.outside(path)) {
			d.run.Warn(fmt.Sprintf("server %q was denied %q; %s", d.run.Entry.Name, path, advice(path)))
		}
	}
}

// outside returns the user's path for one that the server named, since some
// programs begin with its private home.
func (d *denials) outside(path string) string {
	path = filepath.Clean(path)
	if rest, ok := strings.CutPrefix(path, d.cell.private.Home+"/"); ok && d.home != "" {
		return filepath.Join(d.home, rest)
	}
	return path
}

// note remembers a path that is there and not opened, and reports whether it is news.
func (d *denials) note(path string) bool {
	opened := func(folder string) bool { return isBelow(path, folder) }
	if isSystem(path) || isBelow(path, "/proc") || isBelow(path, "/dev") {
		return false
	}
	if slices.ContainsFunc(d.cell.policy.Write, opened) {
		return false
	}
	// What isn't there would be missing without a sandbox too, unless its folder is.
	if _, err := os.Lstat(path); err != nil {
		if _, err := os.Lstat(filepath.Dir(path)); err != nil || filepath.Dir(path) == "/" {
			return false
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.paths) >= maxDenials || slices.Contains(d.paths, path) {
		return false
	}
	d.paths = append(d.paths, path)
	return true
}

// advice says what to add to an entry.
func advice(path string) string {
	return fmt.Sprintf(`add "sandbox": {"read": [%[1]q]} to its entry, or "write", if it is to have that`, path)
}

// explain adds to why a run ended what the server missed.
func (d *denials) explain(f *source.Failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f == nil || len(d.paths) == 0 {
		return
	}
	f.Message += fmt.Sprintf("; the sandbox denied it %q", d.paths[0])
	f.Fix = strings.TrimPrefix(f.Fix+"; "+advice(d.paths[0]), "; ")
}
