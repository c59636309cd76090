// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// atLevels runs a test at each level that can be had here. It names those that can't.
func atLevels(t *testing.T, test func(t *testing.T, level Level)) {
	t.Helper()
	for _, level := range Levels() {
		if level == LevelOff {
			continue
		}
		t.Run(string(level), func(t *testing.T) {
			if err := try(level); err != nil {
				t.Skipf("this machine has no level %s: %v", level, err)
			}
			test(t, level)
		})
	}
}

// confined starts a shell script at a level, which may write in a folder, and kills it when
// the test ends.
func confined(t *testing.T, level Level, folder, script string, env ...string) *server {
	t.Helper()
	return start(t, Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: withPath(env), Dir: folder,
		Policy: Policy{Level: level, Write: []string{folder}, Network: NetworkNone},
	})
}

func TestProbeFindsALevel(t *testing.T) {
	found := Probe()
	if !canConfine {
		t.Skip("nothing is confined on this machine")
	}
	if err := try(LevelBasic); err != nil {
		t.Errorf("the least that every Linux has: %v", err)
	}
	if err := try(found.Level); err != nil {
		t.Errorf("level %s, which the probe found: %v", found.Level, err)
	}
	for _, level := range Levels() {
		if found.Level.Below(level) && !strings.Contains(strings.Join(found.Lacking, "\n"), string(level)) {
			t.Errorf("the probe doesn't say why there is no level %s: %q", level, found.Lacking)
		}
	}
}

func TestProbeSeesAHollowLevel(t *testing.T) {
	// A level whose walls were not put up: no filter, no rules.
	c := &confinement{Level: LevelLandlock, Probe: true}
	if err := c.verify(); err != errHollow {
		t.Errorf("got %v in a process that nothing confines, want %v", err, errHollow)
	}
}

func TestConfinedServerSpeaksAndEnds(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		s := confined(t, level, t.TempDir(), `read line; echo "got $line"; exit 5`)
		if got := s.Confinement(); got.Level != level {
			t.Errorf("confined at %v, want %v", got, level)
		}
		s.stdin.WriteString("this\n")
		if got := s.line(t); got != "got this" {
			t.Errorf("it answers %q", got)
		}
		wait(t, 5*time.Second, "it has exited", s.Exited())
		if got := s.Exit(); got.Code != 5 || got.Signal != 0 || got.Lost {
			t.Errorf("got %+v, want exit status 5", got)
		}
		wait(t, 5*time.Second, "its tree is gone", s.Gone())
	})
}

func TestConfinedServerDiesOfASignal(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		s := confined(t, level, t.TempDir(), `kill -SEGV $$`)
		wait(t, 5*time.Second, "it has exited", s.Exited())
		if got := s.Exit(); got.Signal != syscall.SIGSEGV {
			t.Errorf("got %+v, want SIGSEGV", got)
		}
	})
}

// The process id that people are shown is the server's, as the host sees it.
func TestConfinedServersIDIsTheHosts(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		mark := newMark(t)
		s := confined(t, level, t.TempDir(), `echo ready; read wait`, mark)
		s.line(t)
		if got := marked(mark); len(got) != 1 || got[0] != s.PID() {
			t.Errorf("processes %v run the server, and its id is said to be %d", got, s.PID())
		}
		if used, ok := s.Used(); !ok || used == 0 {
			t.Errorf("it uses %d bytes, %v", used, ok)
		}
	})
}

func TestConfinedServersEnvironmentIsTheSpecs(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		got := output(t, Spec{
			Path: "/bin/cat", Args: []string{"cat", "/proc/self/environ"}, Env: []string{"A=1", "B=\xff"},
			Policy: Policy{Level: level},
		})
		if got != "A=1\x00B=\xff\x00" {
			t.Errorf("got %q", got)
		}
	})
}

func TestConfinedTreeEndsWithItsLeader(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		for name, worker := range workers {
			mark := newMark(t)
			s := confined(t, level, t.TempDir(), worker+`
				echo started; read go; exit 5`, mark)
			s.line(t)
			eventually(t, 5*time.Second, "a worker runs: "+name, func() bool { return len(marked(mark)) > 1 })
			s.stdin.WriteString("\n")
			wait(t, 5*time.Second, "the tree is gone: "+name, s.Gone())
			if left := marked(mark); len(left) > 0 {
				t.Errorf("%s: alive after Gone: %v", name, left)
			}
			if got := s.Exit(); got.Code != 5 {
				t.Errorf("%s: got %v, want exit status 5", name, got)
			}
		}
	})
}

func TestConfinedTreeIsTerminatedAndKilled(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		mark := newMark(t)
		s := confined(t, level, t.TempDir(), `trap 'echo leader' TERM
			(setsid sh -c 'trap "echo worker; exit" TERM; echo ready; while :; do sleep 0.01; done' &)
			while :; do sleep 0.01; done`, mark)
		s.line(t)
		if err := s.Terminate(); err != nil {
			t.Fatal(err)
		}
		if got := s.line(t) + " " + s.line(t); got != "leader worker" && got != "worker leader" {
			t.Errorf("the answers to SIGTERM: %q", got)
		}
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		wait(t, 2*time.Second, "the tree is gone", s.Gone())
		wantNothingLeft(t, mark)
		if got := s.Exit(); got.Signal != syscall.SIGKILL {
			t.Errorf("got %+v, want SIGKILL", got)
		}
	})
}

func TestConfinedTreeEndsWithItsHost(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		t.Setenv(levelVariable, string(level))
		mark := newMark(t)
		host := role(t, "host", `(setsid sh -c 'sleep 1000 & exit' &)
			while :; do sleep 1; done`, mark)
		startHost(t, host)
		eventually(t, 5*time.Second, "a worker runs", func() bool { return len(marked(mark)) > 1 })
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wantNothingLeft(t, mark)
	})
}

func TestConfinedTreeEndsWithItsLauncher(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		adopt(t)
		mark := newMark(t)
		s := confined(t, level, t.TempDir(), `setsid sleep 1000 & echo started; read wait`, mark)
		s.line(t)
		eventually(t, 5*time.Second, "a worker runs", func() bool { return len(marked(mark)) > 1 })
		if err := s.launcher.Kill(); err != nil {
			t.Fatal(err)
		}
		wait(t, 2*time.Second, "the tree is gone", s.Gone())
		wantNothingLeft(t, mark)
		if got := s.Exit(); !got.Lost {
			t.Errorf("got %+v, want Lost", got)
		}
	})
}

// Nothing that the server sends to process 1 of its namespace may end that.
func TestServerCannotEndItsInit(t *testing.T) {
	if err := try(LevelNamespaces); err != nil {
		t.Skipf("this machine has no namespaces: %v", err)
	}
	s := confined(t, LevelNamespaces, t.TempDir(), `for s in $(seq 1 31); do kill -$s 1; done 2>/dev/null
		echo alive; read wait`)
	if got := s.line(t); got != "alive" {
		t.Errorf("got %q", got)
	}
	if closed(s.Exited()) {
		t.Error("the server has ended")
	}
}

func TestConfinedStartsLeaveNothing(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		cycle := func() {
			s := confined(t, level, t.TempDir(), `setsid sleep 1000 & read wait`)
			s.stdin.Close()
			wait(t, 5*time.Second, "the tree is gone", s.Gone())
			s.stdout.Close()
		}
		cycle()
		fds, kids := descriptors(t), len(children(os.Getpid()))
		for range 20 {
			cycle()
		}
		if got := descriptors(t); got > fds {
			t.Errorf("descriptors: %d, then %d", fds, got)
		}
		if got := len(children(os.Getpid())); got > kids {
			t.Errorf("children, zombies included: %d, then %d", kids, got)
		}
	})
}

func TestConfinedStartErrors(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		folder := t.TempDir()
		policy := Policy{Level: level, Write: []string{folder}}
		for name, test := range map[string]struct {
			spec Spec
			want StartError
		}{
			"missing": {
				Spec{Path: folder + "/missing", Policy: policy},
				StartError{OpExec, folder + "/missing", syscall.ENOENT},
			},
			"folder": {
				Spec{Path: "/bin/true", Dir: "/no/such/folder", Policy: policy},
				StartError{OpChdir, "/no/such/folder", syscall.ENOENT},
			},
			"relative": {
				Spec{Path: "/bin/true", Policy: Policy{Level: level, Read: []string{"here"}}},
				StartError{OpConfine, "", errPolicyPath},
			},
			"unknown": {
				Spec{Path: "/bin/true", Policy: Policy{Level: "tight"}},
				StartError{OpConfine, "", errPolicyLevel},
			},
		} {
			_, err := Start(test.spec, Stdio{})
			if got, ok := err.(*StartError); !ok || *got != test.want {
				t.Errorf("%s: got %v, want %v", name, err, &test.want)
			}
		}
	})
}

// A folder that is none of the server's can't be worked in, where it isn't there.
func TestWorkingDirectoryOutsideOfTheLists(t *testing.T) {
	if err := try(LevelNamespaces); err != nil {
		t.Skipf("this machine has no namespaces: %v", err)
	}
	_, err := Start(Spec{Path: "/bin/true", Dir: t.TempDir(), Policy: Policy{Level: LevelNamespaces}}, Stdio{})
	if got, ok := err.(*StartError); !ok || got.Op != OpConfine || got.Err == nil {
		t.Errorf("got %v, want a failure to confine", err)
	}
}

func TestConfinedServerKeepsItsLimits(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		s := start(t, Spec{
			Path: "/bin/sh", Args: []string{"sh", "-c", `ulimit -n; ulimit -d; read wait`}, Env: withPath(nil),
			Policy: Policy{Level: level}, Limits: Limits{Memory: 512 << 20, OpenFiles: 99, NoCgroup: true},
		})
		if got := s.line(t) + " " + s.line(t); got != "99 524288" {
			t.Errorf("descriptors and KiB of data: %q", got)
		}
		if got := fmt.Sprint(s.Enforcement().Memory); got != "[rlimit_data sampler]" {
			t.Errorf("its memory is limited by %s", got)
		}
	})
}

func TestConfinedTreeThatUsesTooMuchIsEnded(t *testing.T) {
	needHogs(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	atLevels(t, func(t *testing.T, level Level) {
		s := start(t, Spec{
			Path: self, Args: []string{roleName, "hog", "shared", fmt.Sprint(512 << 20), "1"},
			Policy: Policy{Level: level, Read: []string{self}}, Limits: Limits{Memory: 128 << 20, NoCgroup: true},
		})
		wait(t, 20*time.Second, "it has been ended", s.Gone())
		if got := s.Exit(); !got.Over {
			t.Errorf("got %+v, want Over", got)
		}
	})
}

func TestSecretFilesAreThereForAConfinedServer(t *testing.T) {
	atLevels(t, func(t *testing.T, level Level) {
		folder := filepath.Join(t.TempDir(), "secrets")
		got := output(t, Spec{
			Path: "/bin/cat", Args: []string{"cat", folder + "/TOKEN"}, Policy: Policy{Level: level},
			Files: Files{Dir: folder, All: []File{{Name: "TOKEN", Content: []byte("s3cret")}}},
		})
		if got != "s3cret" {
			t.Errorf("got %q", got)
		}
	})
}
