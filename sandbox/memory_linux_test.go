// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
)

// testLimit is far above what a test binary has of its own, of which the stacks of
// threads are most: RLIMIT_DATA counts 8 MB for each.
const testLimit = 192 * megabyte

// hogSpec is a hog that takes so much at a time, so many times.
func hogSpec(t *testing.T, kind string, size, times int) Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{
		Path: self, Args: []string{roleName, "hog", kind, fmt.Sprint(size), fmt.Sprint(times)},
		Limits: Limits{Memory: testLimit},
	}
}

// needHogs skips where hogs are too large from the start.
func needHogs(t *testing.T) {
	t.Helper()
	if misbehave.Instrumented() {
		t.Skip("the race detector takes more memory than the limit allows")
	}
}

// abandoned reports whether the launcher that made a group is gone.
func abandoned(folder string) bool {
	var pid int
	var began uint64
	_, err := fmt.Sscanf(strings.TrimPrefix(filepath.Base(folder), groupPrefix()), "%d-%d", &pid, &began)
	return err == nil && startTime(pid) != began
}

// groups returns the control groups that launchers have at the moment, also those of
// other tests.
func groups() (list []string) {
	for _, h := range hierarchies() {
		found, _ := filepath.Glob(filepath.Join(h.base(), groupPrefix()+"*"))
		list = append(list, found...)
	}
	return list
}

// What is too much ends the tree, whichever way it was taken and whatever layers
// there are, and leaves its neighbour alone.
func TestTooMuchMemory(t *testing.T) {
	needHogs(t)
	neighbour := start(t, hogSpec(t, "private", megabyte, 1))
	neighbour.line(t)
	for _, kind := range []string{"private", "shared", "file", "forks"} {
		for _, noCgroup := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,no cgroup %v", kind, noCgroup), func(t *testing.T) {
				spec := hogSpec(t, kind, 32*megabyte, 100)
				spec.Limits.NoCgroup = noCgroup
				s := start(t, spec)
				wait(t, 10*time.Second, "the tree is gone", s.Gone())
				exit := s.Exit()
				// One process by itself may find that its allocation fails.
				if alone := kind == "private"; !exit.Over && !(alone && exit.Code > 0) {
					t.Errorf("it ended otherwise: %+v", exit)
				}
				if exit.Over && exit.Peak < testLimit {
					t.Errorf("the peak is %d MB, of %d", exit.Peak/megabyte, testLimit/megabyte)
				}
				// What a tree can take during one pause of the sampler is not bounded by
				// the sampler; where the kernel counts, it is.
				if !noCgroup && slices.Contains(s.Enforcement().Memory, LayerCgroup1) && exit.Peak > testLimit*11/10 {
					t.Errorf("the peak is %d MB, of %d", exit.Peak/megabyte, testLimit/megabyte)
				}
			})
		}
	}
	if closed(neighbour.Exited()) {
		t.Error("the neighbour was ended too")
	}
}

// A leak that isn't faster than the sampler trusts it to be ends within a tenth of the
// limit, by the sampler alone.
func TestSlowLeak(t *testing.T) {
	needHogs(t)
	spec := hogSpec(t, "slow", megabyte, 1000)
	spec.Limits.NoCgroup = true
	s := start(t, spec)
	wait(t, 30*time.Second, "the tree is gone", s.Gone())
	if exit := s.Exit(); !exit.Over || exit.Peak > testLimit*11/10 {
		t.Errorf("it ended otherwise, or late: %+v", exit)
	}
}

// What the tree uses is seen from outside, and is not counted twice.
func TestUsed(t *testing.T) {
	needHogs(t)
	spec := hogSpec(t, "shared", 32*megabyte, 1)
	spec.Limits = Limits{}
	s := start(t, spec)
	s.line(t)
	used, ok := s.Used()
	if !ok || used < 32*megabyte || used > 64*megabyte {
		t.Errorf("uses %d MB, %v", used/megabyte, ok)
	}
	if got := s.Enforcement(); got.Memory != nil || got.Unenforced != nil {
		t.Errorf("without a limit there is in force: %+v", got)
	}
	s.Kill()
	wait(t, 5*time.Second, "it has exited", s.Exited())
	if _, ok := s.Used(); ok {
		t.Error("a server that is gone uses memory")
	}
}

// An ordinary user gets no control group here, and the limit holds all the same.
func TestTooMuchMemoryOfAUser(t *testing.T) {
	needHogs(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	host := role(t, "host-hog", fmt.Sprint(testLimit), "forks", fmt.Sprint(24*megabyte), "100")
	host.Path = "/proc/self/exe" // the file itself is where other users can't go
	asUser(host, 65534)
	stdin, _ := pipe(t)
	host.Stdin = stdin
	out, err := host.Output()
	if err != nil {
		t.Fatal(err)
	}
	var over bool
	var peak int64
	if _, err := fmt.Sscanf(string(out), "[rlimit_data sampler]\n%t %d", &over, &peak); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if !over || peak < testLimit {
		t.Errorf("over %v, with a peak of %d", over, peak)
	}
}

func TestSumOfFields(t *testing.T) {
	const text = "Rss: 8 kB\nPss:     20 kB\nPss_Anon: 7 kB\nSwapPss:  3 kB\n"
	if got := sumOfFields([]byte(text), "Pss:", "SwapPss:"); got != 23<<10 {
		t.Errorf("got %d", got)
	}
}

// The less is left, the sooner is the next look; a tree that grows fast is looked at
// sooner still.
func TestSamplerPause(t *testing.T) {
	s := &sampler{limit: 512 * megabyte}
	for _, c := range []struct {
		last   int64
		growth float64
		want   time.Duration
	}{
		{0, fastGrowth, time.Second},
		{384 * megabyte, fastGrowth, 250 * time.Millisecond},
		{384 * megabyte, 2 * fastGrowth, 125 * time.Millisecond},
		{512 * megabyte, fastGrowth, soonestSample},
	} {
		s.last = c.last
		if got := s.pause(c.growth); got != c.want {
			t.Errorf("at %d MB, growing by %.0f: got %v, want %v", c.last/megabyte, c.growth, got, c.want)
		}
	}
}

// BenchmarkLimitedStart starts /bin/true and waits for its end, without limits and with.
func BenchmarkLimitedStart(b *testing.B) {
	for name, limits := range map[string]Limits{
		"plain": {}, "limited": {Memory: testLimit}, "no cgroup": {Memory: testLimit, NoCgroup: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(Spec{Path: "/bin/true", Limits: limits}, Stdio{})
				if err != nil {
					b.Fatal(err)
				}
				<-p.Gone()
			}
		})
	}
}

// BenchmarkSample looks once at a tree of three processes, in both ways.
func BenchmarkSample(b *testing.B) {
	p, err := Start(Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 1000 & sleep 1000 & wait"}, Env: withPath(nil),
	}, Stdio{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { p.Kill(); <-p.Gone() }()
	s := &sampler{limit: testLimit, data: testLimit}
	for name, of := range map[string]func(int) int64{"resident": s.glance, "proportional": proportional} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sum(descendants(p.launcher.Pid), of)
			}
		})
	}
}
