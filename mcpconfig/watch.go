// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	// removalTime is how long a file must stay away to count as removed. Editors and version
	// control write a file by removing it first.
	removalTime = 5 * time.Second
)

// Hooks are told of what a watch sees, one at a time, from the goroutine of the watch.
type Hooks struct {
	// Changed is called each time the contents of mcp.json or config.yml have changed, or the
	// folder's path leads to another folder.
	Changed func()
	// Kept is called when files went in a way that is no removal: with their folder. It is told
	// why that is no change, once until Back is called.
	Kept func(reason string)
	// Back is called after Kept, when the folder is back or its files were removed after all;
	// Changed is called after it when the files are not what they were.
	Back func()
}

// Watch tells of changes of the files in the folder, until ctx is done; then it returns nil. It
// compares contents, not times: a touch is no change, and a file that comes is one. A file that
// goes is one when it stays away for some seconds, and its folder doesn't: a folder that was
// moved, or is on a network that went, takes nothing with it. Watch follows files that are
// replaced by rename and symbolic links that are redirected, and waits for a folder that doesn't
// exist yet.
//
// Watch blocks. Changes before its call are not seen; use [Config.Watch] to see those since a
// [Load]. The error is one of setting up notification, which leaves nothing running.
func Watch(ctx context.Context, dir string, hooks Hooks) error {
	return watch(ctx, &watcher{dir: dir, known: contents(dir), real: realFolder(dir), hooks: hooks})
}

// Watch is the function [Watch] for the folder of c. Changes since c was loaded count: when the
// files differ already, Changed is called at once.
func (c *Config) Watch(ctx context.Context, hooks Hooks) error {
	known := map[string]string{}
	for _, f := range c.Files {
		known[f.Path] = contentOf(f)
	}
	return watch(ctx, &watcher{dir: c.Dir, known: known, real: c.realDir, hooks: hooks})
}

func watch(ctx context.Context, w *watcher) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", w.dir, err)
	}
	// Nothing is lost when closing fails: the watcher is not used any more.
	defer func() { _ = notify.Close() }()
	w.notify, w.removal = notify, removalTime
	w.run(ctx)
	return nil
}

// watcher is one watch. All of it belongs to the goroutine that calls run.
type watcher struct {
	dir     string
	notify  *fsnotify.Watcher
	hooks   Hooks
	removal time.Duration     // how long a file must stay away
	known   map[string]string // contents of each file by path, as of the last call of Changed
	real    string            // where dir led then; empty when there was none
	folder  fs.FileInfo       // of dir, when files were last found in it; nil for never
	away    time.Time         // since when files have been away; zero when none is
	told    bool              // that they are away, and why that is no change
	// testOnlyChecked is called after each look at the files, by tests.
	testOnlyChecked func()
}

// run looks at the files whenever something may have happened to them, until ctx is done.
func (w *watcher) run(ctx context.Context) {
	w.arm()
	quiet := time.NewTimer(w.check())
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
			quiet.Reset(w.check())
		}
	}
}

// check tells of what differs from what is known, and returns when to look again.
func (w *watcher) check() (next time.Duration) {
	if w.testOnlyChecked != nil {
		defer w.testOnlyChecked()
	}
	now, real := contents(w.dir), realFolder(w.dir)
	info, err := os.Stat(w.dir)
	if w.lacks(now) {
		if reason := w.notRemoved(now, info, err); reason != "" {
			if !w.told {
				w.told = true
				w.hooks.Kept(reason)
			}
			return pollTime
		}
		if w.away.IsZero() {
			w.away = time.Now()
		}
		if left := w.removal - time.Since(w.away); left > 0 {
			return left
		}
	}
	w.away = time.Time{}
	if w.told {
		w.told = false
		w.hooks.Back()
	}
	if hasFile(now) {
		w.folder = info
	}
	moved := w.real != "" && real != "" && w.real != real
	w.real = real
	if moved || !maps.Equal(now, w.known) {
		w.known = now
		w.hooks.Changed()
	}
	return pollTime
}

// lacks reports whether a file is not there that is known.
func (w *watcher) lacks(now map[string]string) bool {
	for path, content := range now {
		if content == absent && w.known[path] != absent {
			return true
		}
	}
	return false
}

// notRemoved says why files that went were not removed, empty when they may have been. info and
// err are of the folder.
func (w *watcher) notRemoved(now map[string]string, info fs.FileInfo, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the configuration folder is gone"
	case err == nil && !info.IsDir():
		return "a file stands in the place of the configuration folder"
	case err != nil:
		return "the configuration folder can't be read: " + reason(err).Error()
	case w.folder != nil && !os.SameFile(w.folder, info) && !hasFile(now):
		return "another folder, without a configuration, stands in the place of the configuration folder"
	}
	return ""
}

// hasFile reports whether there is any file.
func hasFile(contents map[string]string) bool {
	for _, content := range contents {
		if content != absent {
			return true
		}
	}
	return false
}

// realFolder returns where the path of a folder leads, empty when that is nowhere.
func realFolder(dir string) string {
	// What can't be told is no other folder.
	real, _ := filepath.EvalSymlinks(dir)
	return real
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
// and every folder with a symbolic link on the way to it or to a file in it, without links.
func watchedFolders(dir string) map[string]bool {
	folders := map[string]bool{}
	watch := func(folder string) {
		folder = nearestFolder(folder)
		if real := realFolder(folder); real != "" {
			folder = real
		}
		folders[folder] = true
	}
	watch(dir)
	for _, path := range []string{dir, filepath.Join(dir, ServersFile), filepath.Join(dir, GeneralFile)} {
		left := 40 // as many links as Linux follows, see path_resolution(7)
		followLinks(path, &left, watch)
	}
	return folders
}

// followLinks calls watch for the folder of each symbolic link on the way to a path, and for that
// of what a link leads to unless that is a folder itself.
func followLinks(path string, left *int, watch func(folder string)) {
	for p := path; p != filepath.Dir(p); p = filepath.Dir(p) {
		target, err := os.Readlink(p)
		if err != nil {
			continue
		}
		if *left--; *left < 0 {
			return
		}
		watch(filepath.Dir(p))
		if !filepath.IsAbs(target) {
			from := filepath.Dir(p)
			if real := realFolder(from); real != "" {
				from = real
			}
			target = filepath.Join(from, target)
		}
		if info, err := os.Stat(target); err != nil || !info.IsDir() {
			watch(filepath.Dir(target))
		}
		followLinks(target, left, watch)
	}
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
	info, err := os.Stat(dir)
	inFile := err == nil && !info.IsDir() // nothing can be in it, or be wrong there
	for _, name := range []string{ServersFile, GeneralFile} {
		s := &source{name: name, path: filepath.Join(dir, name)}
		data, ferr := s.read()
		f := File{Path: s.path, Exists: s.exists && !inFile}
		if ferr == nil && s.exists {
			f.Hash = hashOf(data)
		}
		found[f.Path] = contentOf(f)
	}
	return found
}

// absent is what a watch compares of a file that isn't there.
const absent = "absent"

// contentOf returns what a watch compares: the hash, or why there is none.
func contentOf(f File) string {
	switch {
	case !f.Exists:
		return absent
	case f.Hash == "":
		return "unreadable"
	}
	return f.Hash
}
