// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// filesIn is a server's files in a folder that isn't there yet.
func filesIn(t *testing.T) Files {
	return Files{Dir: filepath.Join(t.TempDir(), "of the server"), All: []File{
		{Name: "KEY_FILE", Content: []byte("the key")}, {Name: "OTHER", Content: []byte("another")},
	}}
}

// isGone reports whether there is nothing of that name.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestServerFindsItsFiles(t *testing.T) {
	files := filesIn(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := Start(Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", `cat "$1"/*; stat -c " %a" "$1" "$1/KEY_FILE"`, "sh", files.Dir},
		Files: files, Env: []string{"PATH=/bin:/usr/bin"},
	}, Stdio{Stdout: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := "the keyanother 700\n 400\n"; string(out) != want {
		t.Errorf("the server found %q, want %q", out, want)
	}
	wait(t, 10*time.Second, "the end of the tree", p.Gone())
	if !isGone(files.Dir) {
		t.Error("its files are still there")
	}
}

func TestFilesGoWithTheTree(t *testing.T) {
	files := filesIn(t)
	p, err := Start(Spec{Path: "/bin/sleep", Args: []string{"sleep", "300"}, Files: files}, Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(files.Dir, "KEY_FILE")); err != nil || string(text) != "the key" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if err := p.launcher.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wait(t, 10*time.Second, "the end of the tree", p.Gone())
	if !isGone(files.Dir) {
		t.Error("its files are still there after its launcher was killed")
	}
}

func TestFailedStartLeavesNoFiles(t *testing.T) {
	files := filesIn(t)
	if _, err := Start(Spec{Path: "/no/such/program", Files: files}, Stdio{}); err == nil {
		t.Fatal("it started")
	}
	if !isGone(files.Dir) {
		t.Error("the files are there")
	}
	if err := os.Mkdir(files.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(Spec{Path: "/bin/true", Files: files}, Stdio{})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if isGone(files.Dir) {
		t.Error("somebody else's folder was removed")
	}
}

func TestFilesStayInTheirFolder(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/x", "a\x00"} {
		files := Files{Dir: t.TempDir() + "/f", All: []File{{Name: name}}}
		if _, err := Start(Spec{Path: "/bin/true", Files: files}, Stdio{}); !errors.Is(err, errFileName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := Start(Spec{Path: "/bin/true", Files: Files{Dir: "f", All: []File{{Name: "x"}}}}, Stdio{}); err == nil {
		t.Error("a relative folder was taken")
	}
}
