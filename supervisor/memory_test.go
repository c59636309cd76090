// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// needMemoryLimits skips on systems where nothing limits memory.
func needMemoryLimits(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("limits of memory need Linux")
	}
}

// needSmallServers skips where misbehaving servers are too large from the start.
func needSmallServers(t *testing.T) {
	t.Helper()
	if misbehave.Instrumented() {
		t.Skip("the race detector takes more memory than the limit allows")
	}
}

// withoutCgroup leaves the sampler and the data limit alone.
func withoutCgroup(o *Options) { o.limits.noCgroup = true }

// leak has a server take memory, a little at a time, until it is gone.
func leak(t *testing.T, s *Server) *source.Failure {
	t.Helper()
	for range 200 {
		if _, err := s.Call(t.Context(), tool("alloc", args{"mb": 16})); err != nil {
			return failed(t, err, source.ServerCrashed)
		}
	}
	t.Fatal("it took 3.2 GB")
	return nil
}

// A server that leaks ends, with the cause and a number that may do, and is started
// again; its neighbour notices nothing.
func TestMemoryLimit(t *testing.T) {
	needMemoryLimits(t)
	needSmallServers(t)
	for name, change := range map[string]func(*Options){
		"with all layers": func(*Options) {}, "without a cgroup": withoutCgroup,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			leaky := misbehaving()
			leaky["memoryLimitMb"] = 256
			r.apply(map[string]fields{"leaky": leaky, "neighbour": misbehaving()})
			r.ready("leaky", "neighbour")
			before := pidOf(t, r.Server("neighbour"))
			layers := r.Server("leaky").Status().Limits.Memory
			if !slices.Contains(layers, "sampler") || !slices.Contains(layers, "rlimit_data") {
				t.Errorf("in force is %q", layers)
			}
			f := leak(t, r.Server("leaky"))
			if f.Reason != source.ReasonMemory {
				t.Errorf("the reason is %q: %v", f.Reason, f)
			}
			for _, want := range []string{
				"memory: the server ended", "peak of", "memoryLimitMb is 256", "set memoryLimitMb to ",
			} {
				if !strings.Contains(f.Error(), want) {
					t.Errorf("%q lacks %q", f.Error(), want)
				}
			}
			eventually(t, "it is restarted", func() bool { return r.Server("leaky").Status().Restarts == 1 })
			r.ready("leaky")
			if pidOf(t, r.Server("neighbour")) != before {
				t.Error("the neighbour is another process")
			}
		})
	}
}

// What ends for another reason isn't said to have run out of memory.
func TestCrashUnderALimit(t *testing.T) {
	needMemoryLimits(t)
	needSmallServers(t)
	r := newRig(t)
	entry := misbehaving()
	entry["memoryLimitMb"] = 1024
	s := r.only(entry)
	_, err := s.Call(t.Context(), tool("crash", args{"code": 7}))
	if f := failed(t, err, source.ServerCrashed); f.Reason != "" || strings.Contains(f.Message, "memory") {
		t.Errorf("%q: %v", f.Reason, f)
	}
}

func TestUsedMemory(t *testing.T) {
	needMemoryLimits(t)
	needSmallServers(t)
	r := newRig(t)
	s := r.only(misbehaving())
	before, ok := s.UsedMemory()
	if !ok || before < megabyte {
		t.Fatalf("uses %d, %v", before, ok)
	}
	use(t, s, "alloc", args{"mb": 50})
	after := before
	eventually(t, "another measure", func() bool {
		after, _ = s.UsedMemory()
		return after != before
	})
	if after < before+45*megabyte || after > before+100*megabyte {
		t.Errorf("uses %d MB, after %d MB and 50 more", after/megabyte, before/megabyte)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used, ok := s.UsedMemory(); ok {
		t.Errorf("a server that is stopped uses %d", used)
	}
}

// What a person asked for and doesn't get is said once at each start.
func TestUnenforcedLimits(t *testing.T) {
	r := newRig(t, withoutCgroup)
	entry := misbehaving()
	entry["cpuLimit"], entry["maxOpenFiles"] = 0.5, 50
	s := r.only(entry)
	told := r.Saw("the limit of processor time is not enforced")
	if !strings.Contains(told, `server "s"`) {
		t.Errorf("said is %q", told)
	}
	if got := s.Status().Limits; len(got.Unenforced) == 0 || len(got.Memory) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestEnough(t *testing.T) {
	for used, want := range map[int]int{1: 64, 512: 768, 530: 832, 85: 128} {
		if got := enough(used); got != want {
			t.Errorf("for %d it suggests %d, not %d", used, got, want)
		}
	}
}

func TestSaysMemory(t *testing.T) {
	for words, want := range map[string]bool{
		"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory": true,
		"RangeError: Array buffer allocation failed":                                        true,
		"MemoryError":       true,
		"panic: index of 7": false,
		"":                  false,
		"java.lang.OutOfMemoryError: Java heap space": true,
	} {
		if got := saysMemory(words); got != want {
			t.Errorf("%q: %v", words, got)
		}
	}
}

func TestLimitsOf(t *testing.T) {
	entry := &mcpconfig.Server{
		MemoryLimitMB: 2, AddressSpaceLimitMB: 3, CPULimit: 0.5, MaxProcesses: 4, MaxOpenFiles: 5,
	}
	want := sandbox.Limits{
		Memory: 2 << 20, AddressSpace: 3 << 20, CPU: 0.5, Processes: 4, OpenFiles: 5, NoCgroup: true,
	}
	if got := limitsOf(entry, true); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A leaker is a server's program that takes memory until it is ended, in a way of its
// runtime. It says nothing, so that it is not ready either.
type leaker struct{ runtime, flag, program string }

// leakers are the ways that servers leak by.
func leakers() map[string]leaker {
	return map[string]leaker{
		"node-heap": {"node", "-e", "const a = []; setInterval(() => {" +
			" for (let i = 0; i < 4e5; i++) a.push({i}) }, 5)"},
		"node-buffers": {"node", "-e", `const a = []; setInterval(() => a.push(Buffer.alloc(4<<20, 1)), 20)`},
		"python": {"python3", "-c", "import time\na = []\nwhile True:\n" +
			" a.append(bytearray(b'x') * (4 << 20)); time.sleep(0.02)"},
		"python-forks": {"python3", "-c", "import os, time\nwhile True:\n if os.fork() == 0:\n" +
			"  a = bytearray(b'x') * (20 << 20); time.sleep(1000)\n time.sleep(0.3)"},
		"python-shared": {"python3", "-c", "import mmap, time\na = []\nwhile True:\n" +
			" m = mmap.mmap(-1, 4 << 20); m.write(b'x' * (4 << 20)); a.append(m); time.sleep(0.02)"},
		"python-file": {"python3", "-c", "import mmap, tempfile, time\na = []\nwhile True:\n" +
			" f = tempfile.TemporaryFile(dir='/dev/shm'); f.write(b'x' * (4 << 20)); f.flush()\n" +
			" m = mmap.mmap(f.fileno(), 4 << 20); m[:] = b'y' * (4 << 20); a.append((f, m)); time.sleep(0.02)"},
	}
}

// Runtimes that leak, in each way and all at the same time, are ended in time, with the
// cause, whichever layers there are; their neighbour isn't.
func TestLeakers(t *testing.T) {
	needMemoryLimits(t)
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	const limit, forks = 256, 60
	servers := map[string]fields{"neighbour": misbehaving()}
	for name, l := range leakers() {
		path, err := exec.LookPath(l.runtime)
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		servers[name] = fields{
			"command": path, "args": []string{l.flag, l.program}, "memoryLimitMb": limit, "maxRestarts": 0,
		}
	}
	all, sampled := newRig(t), newRig(t, withoutCgroup)
	for _, r := range []*rig{all, sampled} {
		r.apply(servers)
		r.ready("neighbour")
	}
	delete(servers, "neighbour")
	for layers, r := range map[string]*rig{"all layers": all, "no cgroup": sampled} {
		neighbour := pidOf(t, r.Server("neighbour"))
		for name := range servers {
			f := r.state(name, source.Parked).LastError
			peak := peakOf(t, f)
			t.Logf("%s, %s: %s", name, layers, strings.Split(f.Message, ";")[0])
			// What comes between two samples is on top, some forks of 20 MB on a machine with much
			// to do.
			if f.Reason != source.ReasonMemory || peak > limit*11/10+forks {
				t.Errorf("%s, %s: reason %q, peak %d: %s", name, layers, f.Reason, peak, f)
			}
		}
		if now := pidOf(t, r.Server("neighbour")); now != neighbour {
			t.Error("the neighbour was ended too")
		}
	}
}

// peakOf reads the peak that a failure tells.
func peakOf(t *testing.T, f *source.Failure) (peak int) {
	t.Helper()
	_, after, _ := strings.Cut(f.Message, "with a peak of ")
	if _, err := fmt.Sscanf(after, "%d MB", &peak); err != nil {
		t.Errorf("no peak in %q", f.Message)
	}
	return peak
}

// Under a limit that suits it, Node has all that it is used for.
func TestNodeUnderALimit(t *testing.T) {
	needMemoryLimits(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip(err)
	}
	done := filepath.Join(t.TempDir(), "done")
	program := `(async () => {
		const server = require("http").createServer((q, a) => a.end("hello")).listen(0, "127.0.0.1");
		await new Promise(r => server.on("listening", r));
		const text = await (await fetch("http://127.0.0.1:" + server.address().port)).text();
		const memory = new WebAssembly.Memory({initial: 10, maximum: 1000});
		const said = [text, memory.buffer.byteLength, process.env.NODE_OPTIONS];
		require("fs").writeFileSync(process.argv[1], said.join(" "));
		setInterval(() => {}, 1e6);
	})()`
	r := newRig(t)
	r.apply(map[string]fields{"s": {
		"command": node, "args": []string{"-e", program, done}, "memoryLimitMb": 512, "maxRestarts": 0,
		"sandbox": args{"write": []string{filepath.Dir(done)}},
	}})
	var text []byte
	eventually(t, "the program is done", func() bool {
		text, _ = os.ReadFile(done)
		return len(text) > 0
	})
	if want := "hello 655360 --max-old-space-size=384"; string(text) != want {
		t.Errorf("it says %q, not %q", text, want)
	}
	if s := r.Server("s").Status(); time.Since(s.Since) < 0 || s.State != source.Starting {
		t.Errorf("it is %s: %v", s.State, s.LastError)
	}
}
