// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// The times of a watch. An editor's save is several events within milliseconds, so a change is
// looked at when the folder has been quiet for a moment, or after a while if it never is.
const (
	quietTime = 100 * time.Millisecond
	maxDelay  = time.Second
	// pollTime is how often the files are looked at without any event: file systems exist that
	// give none (network mounts), and the number of watches a user may have is limited.
	pollTime = 10 * time.Second
)

// Watch calls changed each time the contents of mcp.json or config.yml in the folder have
// changed, until ctx is done; then it returns nil. It compares contents, not times: a touch is
// no change, and a file that comes or goes is one. It follows files that are replaced by rename
// and symbolic links that are redirected, and waits for a folder that doesn't exist yet.
//
// Watch blocks; changed is called from its goroutine, never twice at a time. Changes before the
// call of Watch are not seen; use [Config.Watch] to see those since a [Load]. The error is one
// of setting up notification, which leaves nothing running.
func Watch(ctx context.Context, dir string, changed func()) error {
	return watch(ctx, dir, contents(dir), changed)
}

// Watch is the function [Watch] for the folder of c. Changes since c was loaded count: when the
// files differ already, changed is called at once.
func (c *Config) Watch(ctx context.Context, changed func()) error {
	known := map[string]string{}
	for _, f := range c.Files {
		known[f.Path] = contentOf(f)
	}
	return watch(ctx, c.Dir, known, changed)
}

func watch(ctx context.Context, dir string, known map[string]string, changed func()) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", dir, err)
	}
	// Nothing is lost when closing fails: the watcher is not used any more.
	defer func() { _ = notify.Close() }()
	w := &watcher{dir: dir, notify: notify, known: known, changed: changed}
	w.run(ctx)
	return nil
}

// watcher is one watch. All of it belongs to the goroutine that calls run.
type watcher struct {
	dir     string
	notify  *fsnotify.Watcher
	known   map[string]string // contents of each file by path, as of the last call of changed
	changed func()
	// testOnlyChecked is called after each look at the files, by tests.
	testOnlyChecked func()
}

// run looks at the files whenever something may have happened to them, until ctx is done.
func (w *watcher) run(ctx context.Context) {
	w.arm()
	w.check()
	quiet := time.NewTimer(pollTime)
	defer quiet.Stop()
	var since time.Time // of the first event that was not looked at yet
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.notify.Events:
			if since.IsZero() {
				since = time.Now()
			}
			quiet.Reset(min(quietTime, max(0, time.Until(since.Add(maxDelay)))))
		case <-w.notify.Errors:
			// Events may be lost (an overflow of the queue): look as if there had been one.
			quiet.Reset(quietTime)
		case <-quiet.C:
			since = time.Time{}
			w.arm()
			w.check()
			quiet.Reset(pollTime)
		}
	}
}

// check calls changed when the files differ from what is known.
func (w *watcher) check() {
	now := contents(w.dir)
	if !maps.Equal(now, w.known) {
		w.known = now
		w.changed()
	}
	if w.testOnlyChecked != nil {
		w.testOnlyChecked()
	}
}

// arm watches the folders in which a change can happen, and no others. A folder that can't be
// watched is left to polling.
func (w *watcher) arm() {
	folders := watchedFolders(w.dir)
	for _, old := range w.notify.WatchList() {
		if !folders[old] {
			// It may be gone, and the watch with it.
			_ = w.notify.Remove(old)
		}
	}
	for folder := range folders {
		_ = w.notify.Add(folder)
	}
}

// watchedFolders returns the configuration folder, or the nearest folder above it that exists,
// and every folder through which a file in it is reached by symbolic links.
func watchedFolders(dir string) map[string]bool {
	folders := map[string]bool{nearestFolder(dir): true}
	for _, name := range []string{ServersFile, GeneralFile} {
		const maxLinks = 40 // as many as Linux follows, see path_resolution(7)
		path := filepath.Join(dir, name)
		for range maxLinks {
			target, err := os.Readlink(path)
			if err != nil {
				break
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = target
			folders[nearestFolder(filepath.Dir(path))] = true
		}
		// A folder on the way may be a link too.
		if target, err := filepath.EvalSymlinks(path); err == nil {
			folders[filepath.Dir(target)] = true
		}
	}
	return folders
}

// nearestFolder returns the folder, or the nearest one above it that exists.
func nearestFolder(dir string) string {
	for {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// contents returns a fingerprint of each file in the folder by its path.
func contents(dir string) map[string]string {
	found := map[string]string{}
	for _, name := range []string{ServersFile, GeneralFile} {
		s := &source{name: name, path: filepath.Join(dir, name)}
		data, ferr := s.read()
		f := File{Path: s.path, Exists: s.exists}
		if ferr == nil && s.exists {
			f.Hash = hashOf(data)
		}
		found[f.Path] = contentOf(f)
	}
	return found
}

// contentOf returns what a watch compares: the hash, or why there is none.
func contentOf(f File) string {
	switch {
	case !f.Exists:
		return "absent"
	case f.Hash == "":
		return "unreadable"
	}
	return f.Hash
}
