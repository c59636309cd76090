// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestStartErrorsTellCausesApart(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := file("script", "#!/no/such/interpreter\n", 0o755)
	plain := file("plain", "#!/bin/sh\n", 0o644)
	text := file("text", "echo no program\n", 0o755)
	missing := filepath.Join(dir, "missing")
	long := strings.Repeat("x", 1<<20) // MAX_ARG_STRLEN is 128 KiB
	tooLong := StartError{OpExec, "/bin/true", syscall.E2BIG}

	for name, test := range map[string]struct {
		spec Spec
		want StartError
	}{
		"missing":       {Spec{Path: missing}, StartError{OpExec, missing, syscall.ENOENT}},
		"interpreter":   {Spec{Path: script}, StartError{OpInterpreter, script, syscall.ENOENT}},
		"mode":          {Spec{Path: plain}, StartError{OpExec, plain, syscall.EACCES}},
		"directory":     {Spec{Path: dir}, StartError{OpExec, dir, syscall.EACCES}},
		"format":        {Spec{Path: text}, StartError{OpExec, text, syscall.ENOEXEC}},
		"below a file":  {Spec{Path: plain + "/x"}, StartError{OpExec, plain + "/x", syscall.ENOTDIR}},
		"missing dir":   {Spec{Path: "/bin/true", Dir: missing}, StartError{OpChdir, missing, syscall.ENOENT}},
		"file as dir":   {Spec{Path: "/bin/true", Dir: plain}, StartError{OpChdir, plain, syscall.ENOTDIR}},
		"long argument": {Spec{Path: "/bin/true", Args: []string{"true", long}}, tooLong},
		"long variable": {Spec{Path: "/bin/true", Env: []string{"X=" + long}}, tooLong},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(test.spec, Stdio{})
			if p != nil {
				t.Fatalf("it started, as %d", p.PID())
			}
			got, ok := errors.AsType[*StartError](err)
			if !ok {
				t.Fatalf("got %v; want a StartError", err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedStartsLeaveNothing(t *testing.T) {
	fail := func() {
		if _, err := Start(Spec{Path: "/no/such/file"}, Stdio{}); err == nil {
			t.Fatal("a missing file was started")
		}
	}
	fail() // what the runtime opens once and keeps
	fds, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 50 {
		fail()
	}
	if got := descriptors(t); got > fds {
		t.Errorf("descriptors: %d, then %d", fds, got)
	}
	if got := runtime.NumGoroutine(); got > goroutines {
		t.Errorf("goroutines: %d, then %d", goroutines, got)
	}
	if got := zombies(); len(got) > 0 {
		t.Errorf("zombies: %v", got)
	}
}

func TestEnvironmentIsExactlyTheSpecs(t *testing.T) {
	t.Setenv("SANDBOX_TEST_CANARY", "of the host")
	env := []string{"A=1", "EMPTY=", "WITH=a=b", "LINES=a\nb", "B=\xff\xfe", "A=2"}
	got := output(t, Spec{Path: "/bin/cat", Args: []string{"cat", "/proc/self/environ"}, Env: env})
	if want := strings.Join(env, "\x00") + "\x00"; got != want {
		t.Errorf("environment: got %q, want %q", got, want)
	}
	if got := output(t, Spec{Path: "/bin/cat", Args: []string{"cat", "/proc/self/environ"}}); got != "" {
		t.Errorf("no environment: got %q", got)
	}
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	args := []string{"not cat", "/proc/self/cmdline"}
	want := "not cat\x00/proc/self/cmdline\x00"
	if got := output(t, Spec{Path: "/bin/cat", Args: args}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	raw := []string{"echo", "\xff", "ü", "", "a b", `"`}
	if got := output(t, Spec{Path: "/bin/echo", Args: raw}); got != "\xff ü  a b \"\n" {
		t.Errorf("got %q", got)
	}
}

func TestLargeArgumentsAndEnvironment(t *testing.T) {
	var args, env []string
	for i := range 500 {
		args = append(args, fmt.Sprintf("%04d%s", i, strings.Repeat("a", 1000)))
		env = append(env, fmt.Sprintf("V%d=%s", i, strings.Repeat("e", 1000)))
	}
	args = append([]string{"sh", "-c", `echo $#; echo ${#V499}`, "sh"}, args...)
	if got := output(t, Spec{Path: "/bin/sh", Args: args, Env: env}); got != "500\n1000\n" {
		t.Errorf("got %q", got)
	}
}

func TestWorkingDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, Spec{Path: "/bin/pwd", Dir: dir}); got != dir+"\n" {
		t.Errorf("got %q, want %q", got, dir)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, Spec{Path: "/bin/pwd"}); got != here+"\n" {
		t.Errorf("got %q, want the host's %q", got, here)
	}
	if err := os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := output(t, Spec{Path: "./tool", Dir: dir}); got != "ran\n" {
		t.Errorf("a path relative to Dir: got %q", got)
	}
}

func TestServerGetsNoOtherDescriptor(t *testing.T) {
	leaked, err := unix.Dup(1) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leaked)
	// 3 is the directory that ls reads.
	got := output(t, Spec{Path: "/bin/ls", Args: []string{"ls", "/proc/self/fd"}})
	if got != "0\n1\n2\n3\n" {
		t.Errorf("descriptors of the server: %q", got)
	}
}

func TestCloseOnExecEachMarksOnlyTheOthers(t *testing.T) {
	fd, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := closeOnExecEach("/proc/self/fd"); err != nil {
		t.Fatal(err)
	}
	for fd, want := range map[int]int{0: 0, 1: 0, 2: 0, fd: unix.FD_CLOEXEC} {
		if got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || got != want {
			t.Errorf("flags of %d: %d, %v; want %d", fd, got, err, want)
		}
	}
}

func TestPipesAreBlocking(t *testing.T) {
	got := output(t, Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", `cat /proc/self/fdinfo/0 /proc/self/fdinfo/1`},
		Env: withPath(nil),
	})
	for line := range strings.Lines(got) {
		var flags int
		if _, err := fmt.Sscanf(line, "flags: %o", &flags); err == nil && flags&unix.O_NONBLOCK != 0 {
			t.Errorf("a pipe is non-blocking: %q", got)
		}
	}
	if !strings.Contains(got, "flags:") {
		t.Errorf("no flags in %q", got)
	}
}

func TestOutputEndsWhenTheServerClosesIt(t *testing.T) {
	s := shell(t, `exec >&-; read wait`)
	s.stdout.SetReadDeadline(time.Now().Add(5 * time.Second))
	if rest, err := io.ReadAll(s.stdout); err != nil || len(rest) > 0 {
		t.Errorf("reading to the end: %q, %v", rest, err)
	}
	if closed(s.Exited()) {
		t.Error("the server has exited")
	}
}

func TestInputEndsWhenTheHostClosesIt(t *testing.T) {
	s := start(t, Spec{Path: "/bin/cat"})
	if _, err := s.stdin.WriteString("through\n"); err != nil {
		t.Fatal(err)
	}
	if got := s.line(t); got != "through" {
		t.Errorf("got %q", got)
	}
	s.stdin.Close()
	wait(t, 5*time.Second, "cat exits at the end of its input", s.Exited())
}

func TestNilStdioIsTheNullDevice(t *testing.T) {
	p, err := Start(Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "cat; echo out; echo err >&2; exit 7"},
		Env: withPath(nil),
	}, Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, 5*time.Second, "the shell has exited", p.Exited())
	wait(t, 5*time.Second, "the tree is gone", p.Gone())
	if got := p.Exit(); got.Code != 7 {
		t.Errorf("got %v, want exit status 7", got)
	}
}
