// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watching is a watch of a folder in a test.
type watching struct {
	changed chan struct{}
	checked chan struct{}
}

// startWatch watches a folder until the test ends. It returns after the first look at it.
func startWatch(t *testing.T, dir string) *watching {
	t.Helper()
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{changed: make(chan struct{}, 100), checked: make(chan struct{}, 100)}
	inner := &watcher{
		dir: dir, notify: notify, known: contents(dir),
		changed:         func() { w.changed <- struct{}{} },
		testOnlyChecked: func() { w.checked <- struct{}{} },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ends when the test does, which waits for it
		defer close(done)
		inner.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := notify.Close(); err != nil {
			t.Error(err)
		}
	})
	w.waitChecked(t)
	return w
}

// deadline is how long a test waits for what must come. It is less than the polling time, so
// that a test can't pass by polling.
const deadline = pollTime / 2

func (w *watching) waitChanged(t *testing.T, what string) {
	t.Helper()
	select {
	case <-w.changed:
	case <-time.After(deadline):
		t.Fatalf("%s was not noticed", what)
	}
}

func (w *watching) waitChecked(t *testing.T) {
	t.Helper()
	select {
	case <-w.checked:
	case <-time.After(deadline):
		t.Fatal("the files were not looked at")
	}
}

// wantQuiet waits until the files were looked at and fails if that was a change.
func (w *watching) wantQuiet(t *testing.T, what string) {
	t.Helper()
	w.waitChecked(t)
	select {
	case <-w.changed:
		t.Fatalf("%s counted as a change", what)
	default:
	}
}

func (w *watching) drain() {
	for {
		select {
		case <-w.checked:
		default:
			return
		}
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skip("symbolic links:", err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestWatchWriteInPlace(t *testing.T) {
	for _, name := range []string{ServersFile, GeneralFile} {
		path := filepath.Join(t.TempDir(), name)
		writeFile(t, path, "{}")
		w := startWatch(t, filepath.Dir(path))
		writeFile(t, path, "{ }")
		w.waitChanged(t, "a write to "+name)
		writeFile(t, path, "{  }")
		w.waitChanged(t, "a second write to "+name)
	}
}

func TestWatchRenameOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ServersFile)
	writeFile(t, path, "{}")
	w := startWatch(t, dir)
	for _, text := range []string{"{ }", "{  }", "{   }"} {
		writeFile(t, path+"~", text)
		rename(t, path+"~", path)
		w.waitChanged(t, "a rename over the file")
	}
}

func TestWatchRemoveAndCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ServersFile)
	writeFile(t, path, "{}")
	w := startWatch(t, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.waitChanged(t, "a removal")
	writeFile(t, path, "{}")
	w.waitChanged(t, "a new file")
}

func TestWatchFolderCreatedLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "garraia")
	w := startWatch(t, dir)
	mkdir(t, dir)
	writeFile(t, filepath.Join(dir, ServersFile), "{}")
	w.waitChanged(t, "a file in a folder that was missing")
	writeFile(t, filepath.Join(dir, ServersFile), "{ }")
	w.waitChanged(t, "a change in a folder that was missing")
}

func TestWatchFolderReplaced(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "garraia")
	mkdir(t, dir)
	writeFile(t, filepath.Join(dir, ServersFile), "{}")
	w := startWatch(t, dir)
	rename(t, dir, filepath.Join(parent, "old"))
	w.waitChanged(t, "a folder that went")
	mkdir(t, filepath.Join(parent, "new"))
	writeFile(t, filepath.Join(parent, "new", ServersFile), "{}")
	rename(t, filepath.Join(parent, "new"), dir)
	w.waitChanged(t, "a folder that came back")
	writeFile(t, filepath.Join(dir, ServersFile), "{ }")
	w.waitChanged(t, "a change in the new folder")
}

// TestWatchLinkSwap does what Kubernetes does with a mounted ConfigMap: the file links to
// ..data/mcp.json, ..data links to a folder with a time in its name, and an update renames a
// new link over ..data.
func TestWatchLinkSwap(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "..1"))
	writeFile(t, filepath.Join(dir, "..1", ServersFile), "{}")
	symlink(t, "..1", filepath.Join(dir, "..data"))
	symlink(t, filepath.Join("..data", ServersFile), filepath.Join(dir, ServersFile))
	w := startWatch(t, dir)
	for i, folder := range []string{"..2", "..3"} {
		mkdir(t, filepath.Join(dir, folder))
		writeFile(t, filepath.Join(dir, folder, ServersFile), "{ "+string(rune('0'+i)))
		symlink(t, folder, filepath.Join(dir, "..tmp"))
		rename(t, filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data"))
		w.waitChanged(t, "a swapped link")
	}
}

func TestWatchLinkedFile(t *testing.T) {
	elsewhere, dir := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "real.json")
	writeFile(t, target, "{}")
	symlink(t, target, filepath.Join(dir, ServersFile))
	w := startWatch(t, dir)
	writeFile(t, target, "{ }")
	w.waitChanged(t, "a write to the linked file")
	writeFile(t, target+"~", "{  }")
	rename(t, target+"~", target)
	w.waitChanged(t, "a rename over the linked file")
}

func TestWatchTouchIsNoChange(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ServersFile)
	writeFile(t, path, "{}")
	w := startWatch(t, dir)
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	w.wantQuiet(t, "a touch")
	w.drain()
	writeFile(t, path+"~", "{}")
	rename(t, path+"~", path)
	w.wantQuiet(t, "the same text in a new file")
	w.drain()
	writeFile(t, filepath.Join(dir, "other"), "x")
	w.wantQuiet(t, "another file")
}

func TestWatchManyWritesAreFewCalls(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ServersFile)
	w := startWatch(t, dir)
	text := "{"
	for range 200 {
		text += " "
		writeFile(t, path, text)
	}
	w.waitChanged(t, "many writes")
	w.drain()
	if extra := len(w.changed); extra > 3 {
		t.Errorf("%d more calls for one burst of writes", extra)
	}
}

func TestWatchEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Watch(ctx, t.TempDir(), func() { t.Error("called") }); err != nil {
		t.Errorf("Watch: %v", err)
	}
}

// TestConfigWatchSeesEarlierChanges checks that nothing is lost between Load and Watch.
func TestConfigWatchSeesEarlierChanges(t *testing.T) {
	dir := t.TempDir()
	config, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, ServersFile), "{}")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls := 0
	err = config.Watch(ctx, func() {
		calls++
		cancel()
	})
	if err != nil || calls != 1 {
		t.Errorf("Watch: %v after %d calls, want one", err, calls)
	}
}
