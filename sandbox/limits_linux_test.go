// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// limitsOf runs a program under limits and returns what the kernel says of them: the
// soft and the hard value by name.
func limitsOf(t *testing.T, l Limits) map[string]string {
	t.Helper()
	text := output(t, Spec{Path: "/bin/cat", Args: []string{"cat", "/proc/self/limits"}, Limits: l})
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^Max (.+?)  +(\S+) +(\S+)`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = m[2] + " " + m[3]
	}
	return found
}

func TestLimitsHoldFromTheStart(t *testing.T) {
	before := limitsOf(t, Limits{})
	got := limitsOf(t, Limits{Memory: 100 << 20, AddressSpace: 1 << 30, OpenFiles: 77, NoCgroup: true})
	want := map[string]string{
		"data size": "104857600 104857600", "address space": "1073741824 1073741824", "open files": "77 77",
	}
	for name, value := range before {
		if want[name] == "" {
			want[name] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Where a control group counts what is used, what is allocated may be a quarter more.
func TestDataLimit(t *testing.T) {
	l := &Limits{Memory: 100}
	for want, layers := range map[int64][]Layer{
		100: {LayerRlimitData, LayerSampler}, 125: {LayerCgroup1, LayerRlimitData, LayerSampler},
	} {
		if got := l.dataLimit(layers); got != want {
			t.Errorf("with %v: %d, not %d", layers, got, want)
		}
	}
}

// The limits are those of the server, not of what starts it: small ones don't keep it
// from being executed.
func TestTinyLimits(t *testing.T) {
	needHogs(t)
	big := "BIG=" + strings.Repeat("x", 120_000)
	s := start(t, Spec{
		Path: "/bin/true", Env: []string{big}, Limits: Limits{Memory: 1 << 20, OpenFiles: 8, NoCgroup: true},
	})
	wait(t, 5*time.Second, "it has exited", s.Exited())
	if exit := s.Exit(); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	s = start(t, Spec{Path: "/bin/true", Env: []string{big}, Limits: Limits{AddressSpace: 1 << 20}})
	wait(t, 5*time.Second, "it has exited", s.Exited())
	if exit := s.Exit(); exit.Code == 0 {
		t.Errorf("a program that doesn't fit ran: %+v", exit)
	}
}

// What can't be executed is said as without limits.
func TestLimitedStartFails(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec Spec
		op   string
		err  error
	}{
		{Spec{Path: "/no/such/program"}, OpExec, syscall.ENOENT},
		{Spec{Path: "/etc/passwd"}, OpExec, syscall.EACCES},
		{Spec{Path: script}, OpInterpreter, syscall.ENOENT},
		{Spec{Path: "/bin/true", Dir: "/no/such/folder"}, OpChdir, syscall.ENOENT},
		{Spec{Path: "/bin/true", Limits: Limits{Processes: -1}}, OpLimit, errLimits},
	} {
		if c.op != OpLimit {
			c.spec.Limits.Memory = testLimit
		}
		_, err := Start(c.spec, Stdio{})
		e, ok := errors.AsType[*StartError](err)
		if !ok || e.Op != c.op || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %s: %v", c.spec.Path, err, c.op, c.err)
		}
		eventually(t, 5*time.Second, "no launcher that is gone has left a group", func() bool {
			return !slices.ContainsFunc(groups(), abandoned)
		})
	}
	if got := zombies(); len(got) > 0 {
		t.Errorf("zombies: %v", got)
	}
}

// A fork bomb stays what it is allowed to be, and its launcher alive.
func TestTooManyProcesses(t *testing.T) {
	needGroups(t)
	s := start(t, Spec{
		Path: "/bin/bash", Args: []string{"bash", "-c", `for i in $(seq 40); do sleep 1000 & done 2>/dev/null; read x`},
		Env: withPath(nil), Limits: Limits{Processes: 12},
	})
	eventually(t, 10*time.Second, "it has as many processes as it may", func() bool {
		return len(descendants(s.launcher.Pid)) == 12
	})
	if s.Enforcement().Unenforced != nil {
		t.Errorf("%q", s.Enforcement().Unenforced)
	}
}

// Limits that need a control group are said not to hold where there is none.
func TestUnenforced(t *testing.T) {
	s := start(t, Spec{
		Path: "/bin/cat", Limits: Limits{Memory: testLimit, CPU: 1, Processes: 1000, NoCgroup: true},
	})
	got := s.Enforcement()
	if diff := cmp.Diff([]Layer{LayerRlimitData, LayerSampler}, got.Memory); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(got.Unenforced) != 2 || !strings.HasPrefix(got.Unenforced[0], limitOfCPU) ||
		!strings.HasPrefix(got.Unenforced[1], limitOfProcesses) {
		t.Errorf("%q", got.Unenforced)
	}
}
