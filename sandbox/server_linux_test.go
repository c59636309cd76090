// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A server is one that a test started, with the test's ends of its pipes.
type server struct {
	*Process
	stdin  *os.File
	stdout *os.File
}

// shell starts a shell script and kills it when the test ends.
func shell(t *testing.T, script string, env ...string) *server {
	t.Helper()
	return start(t, Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: withPath(env)})
}

// withPath adds the PATH that scripts need.
func withPath(env []string) []string { return append([]string{"PATH=/usr/bin:/bin"}, env...) }

// start starts a server with pipes and kills it when the test ends.
func start(t *testing.T, spec Spec) *server {
	t.Helper()
	theirIn, stdin := pipe(t)
	stdout, theirOut := pipe(t)
	p, err := Start(spec, Stdio{Stdin: theirIn, Stdout: theirOut, Stderr: os.Stderr})
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Errorf("killing the server at the end: %v", err)
		}
		wait(t, 10*time.Second, "the tree is gone at the end of the test", p.Gone())
	})
	return &server{Process: p, stdin: stdin, stdout: stdout}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// line reads one line of the server's output.
func (s *server) line(t *testing.T) string {
	t.Helper()
	return readLine(t, s.stdout)
}

// readLine reads one line and not a byte more.
func readLine(t *testing.T, r *os.File) string {
	t.Helper()
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(r, one); err != nil {
			t.Fatalf("reading a line of output, after %q: %v", line, err)
		}
		if one[0] == '\n' {
			return string(line)
		}
		line = append(line, one[0])
	}
}

// output runs a program to its end and returns what it printed.
func output(t *testing.T, spec Spec) string {
	t.Helper()
	s := start(t, spec)
	s.stdin.Close()
	s.stdout.SetReadDeadline(time.Now().Add(10 * time.Second))
	text, err := io.ReadAll(s.stdout)
	if err != nil {
		t.Fatalf("reading the output of %q: %v", spec.Path, err)
	}
	wait(t, 10*time.Second, spec.Path+" has exited", s.Exited())
	if exit := s.Exit(); exit.Code != 0 {
		t.Fatalf("%q: %v", spec.Path, exit)
	}
	return string(text)
}

// newMark returns an environment variable that all processes of one test's tree
// have, whatever they do to hide, and nothing else has.
func newMark(t *testing.T) string {
	return fmt.Sprintf("SANDBOX_TEST_MARK=%s-%d-%d",
		strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
}

// marked returns the live processes with a mark. A zombie has no environment.
func marked(mark string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(mark)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		found = append(found, pid)
	}
	return found
}

// wantMarked waits until exactly n processes have the mark.
func wantMarked(t *testing.T, mark string, n int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("%d processes of the tree run", n), func() bool {
		return len(marked(mark)) == n
	})
}

// wantNothingLeft fails unless the tree is gone within the two seconds that
// users are promised.
func wantNothingLeft(t *testing.T, mark string) {
	t.Helper()
	eventually(t, 2*time.Second, "no process of the tree is alive", func() bool {
		return len(marked(mark)) == 0
	})
}

// zombies returns the dead children of this process that nobody collected.
func zombies() []int {
	var found []int
	for _, pid := range children(os.Getpid()) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if _, after, ok := bytes.Cut(stat, []byte(") ")); ok && bytes.HasPrefix(after, []byte("Z")) {
			found = append(found, pid)
		}
	}
	return found
}

// descriptors returns how many descriptors this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
