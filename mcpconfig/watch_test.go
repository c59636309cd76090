// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watching is a watch of a folder in a test.
type watching struct {
	changed chan struct{}
	kept    chan string
	back    chan struct{}
	checked chan struct{}
}

// startWatch watches a folder until the test ends. It returns after the first look at it.
func startWatch(t *testing.T, dir string) *watching {
	t.Helper()
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{
		changed: make(chan struct{}, 100), kept: make(chan string, 100), back: make(chan struct{}, 100),
		checked: make(chan struct{}, 100),
	}
	inner := &watcher{
		dir: dir, notify: notify, known: contents(dir), real: realFolder(dir), removal: testRemoval,
		hooks: Hooks{
			Changed: func() { w.changed <- struct{}{} },
			Kept:    func(why string) { w.kept <- why },
			Back:    func() { w.back <- struct{}{} },
		},
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

// testRemoval is long enough for what a test does in one go, even on a machine that is busy.
const testRemoval = 2 * time.Second

// waitKept waits until files went that were not removed.
func (w *watching) waitKept(t *testing.T, why string) {
	t.Helper()
	select {
	case got := <-w.kept:
		if !strings.Contains(got, why) {
			t.Errorf("kept since %s, want %s", got, why)
		}
	case <-time.After(deadline):
		t.Fatalf("it was not told that %s", why)
	}
	select {
	case <-w.changed:
		t.Fatalf("it counted as a change that %s", why)
	default:
	}
}

// waitBack waits until it is told that what went is back.
func (w *watching) waitBack(t *testing.T) {
	t.Helper()
	select {
	case <-w.back:
	case <-time.After(deadline):
		t.Fatal("it was not told that the folder is back")
	}
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
	w.waitKept(t, "the configuration folder is gone")
	mkdir(t, filepath.Join(parent, "new"))
	writeFile(t, filepath.Join(parent, "new", ServersFile), "{  }")
	rename(t, filepath.Join(parent, "new"), dir)
	w.waitChanged(t, "another folder")
	writeFile(t, filepath.Join(dir, ServersFile), "{ }")
	w.waitChanged(t, "a change in the new folder")
	rename(t, dir, filepath.Join(parent, "new"))
	w.waitKept(t, "the configuration folder is gone")
}

// TestWatchFolderWithoutMount has an empty folder appear where the configuration was, as when a
// file system is unmounted.
func TestWatchFolderWithoutMount(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "garraia")
	mkdir(t, dir)
	mkdir(t, filepath.Join(parent, "below"))
	writeFile(t, filepath.Join(dir, ServersFile), "{}")
	w := startWatch(t, dir)
	rename(t, dir, filepath.Join(parent, "mounted"))
	rename(t, filepath.Join(parent, "below"), dir)
	select {
	case <-w.kept:
	case <-w.changed:
		t.Fatal("a folder that was unmounted counted as a change")
	case <-time.After(deadline):
		t.Fatal("a folder that was unmounted was not noticed")
	}
	rename(t, dir, filepath.Join(parent, "below"))
	rename(t, filepath.Join(parent, "mounted"), dir)
	writeFile(t, filepath.Join(dir, ServersFile), "{ }")
	w.waitChanged(t, "a change after the folder came back")
}

// TestWatchFolderReplacedByFile has a file stand in the place of the folder, twice.
func TestWatchFolderReplacedByFile(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "garraia")
	mkdir(t, dir)
	writeFile(t, filepath.Join(dir, ServersFile), "{}")
	w := startWatch(t, dir)
	for range 2 {
		rename(t, dir, filepath.Join(parent, "away"))
		writeFile(t, dir, "")
		w.waitKept(t, "a file stands in the place of the configuration folder")
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		rename(t, filepath.Join(parent, "away"), dir)
		w.waitBack(t)
	}
	writeFile(t, filepath.Join(dir, ServersFile), "{ }")
	w.waitChanged(t, "a change after the folder came back")
}

// TestWatchSlowReplacement removes a file and writes it again.
func TestWatchSlowReplacement(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, ServersFile)
	writeFile(t, path, "{}")
	w := startWatch(t, dir)
	w.drain()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.wantQuiet(t, "a file that is away for a moment")
	w.drain()
	writeFile(t, path, "{}")
	w.wantQuiet(t, "a file that is back")
}

// TestWatchFolderLink has the link to the configuration folder lead elsewhere.
func TestWatchFolderLink(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "links", "garraia")
	mkdir(t, filepath.Dir(dir))
	for _, name := range []string{"a", "b", "c"} {
		mkdir(t, filepath.Join(parent, name))
		writeFile(t, filepath.Join(parent, name, ServersFile), "{}")
	}
	symlink(t, filepath.Join("..", "a"), dir)
	w := startWatch(t, dir)
	for _, name := range []string{"b", "c"} {
		symlink(t, filepath.Join("..", name), dir+"~")
		rename(t, dir+"~", dir)
		w.waitChanged(t, "a link that leads to "+name)
		writeFile(t, filepath.Join(parent, name, ServersFile), "{ }")
		w.waitChanged(t, "a change in "+name)
	}
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
	if err := Watch(ctx, t.TempDir(), Hooks{Changed: func() { t.Error("called") }}); err != nil {
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
	err = config.Watch(ctx, Hooks{Changed: func() {
		calls++
		cancel()
	}})
	if err != nil || calls != 1 {
		t.Errorf("Watch: %v after %d calls, want one", err, calls)
	}
}
