// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervisor

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

var (
	livesFor  = flag.Duration("lives", 4*time.Second, "how long TestRealLives goes on")
	livesSeed = flag.Uint64("lives-seed", 0, "the seed of TestRealLives; 0 takes a new one")
)

// What internal/lifecycle's model does with played runs, this does with processes: it drives
// servers through random lives, and now and then lets them come to rest and looks whether
// what is there is what is said.
type lives struct {
	*rig
	random  *rand.Rand
	mark    string // in the environment of each process
	servers map[string]fields
	waiting sync.WaitGroup // for the outcomes of commands and calls
}

// TestRealLives plays for some seconds, or for as long as -lives says.
func TestRealLives(t *testing.T) {
	seed := *livesSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-lives-seed %d", seed)
	l := &lives{
		rig:    newRig(t, watchful, withHistory, func(o *Options) { o.Shared.Drain = 300 * time.Millisecond }),
		random: rand.New(rand.NewPCG(seed, 0)), mark: fmt.Sprint(seed),
		servers: make(map[string]fields),
	}
	for _, name := range []string{"a", "b", "c"} {
		l.servers[name] = l.text(name)
	}
	l.apply(l.servers)
	before := l.used()
	for began := time.Now(); time.Since(began) < *livesFor; {
		for range 10 {
			l.step(l.pick())
		}
		l.rest()
	}
	l.waiting.Wait()
	l.apply(map[string]fields{})
	eventually(t, "no process is left", func() bool { return len(l.processes("")) == 0 })
	if after := l.used(); after > before+8 { // pipes and sockets of a server are more
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// pick picks a server.
func (l *lives) pick() string {
	names := slices.Sorted(maps.Keys(l.servers))
	return names[l.random.IntN(len(names))]
}

// text is a random entry.
func (l *lives) text(name string) fields {
	texts := []fields{
		misbehaving(),
		misbehaving("--stderr-flood", "100000"),
		misbehaving("--ignore-eof", "--ignore-term"),
		misbehaving("--exit-at-start", "--exit-code", "0"),
		misbehaving("--traceback"),
		misbehaving("--never-init").With("timeoutSecs", 1),
		misbehaving("--slow-init", "300ms"),
		misbehaving("--exit-after", "500ms"),
		misbehaving("--stop-reading-stdin"),
		misbehaving("--setsid-worker", filepath.Join(l.dir, "worker")),
		misbehaving().With("start", "lazy").With("idleStopSecs", 1),
		misbehaving().With("disabled", true),
		misbehaving().With("command", "/nonexistent"),
	}
	env := map[string]string{"GARRA_LIVES": l.mark, "GARRA_LIFE": name}
	return texts[l.random.IntN(len(texts))].With("env", env).With("maxRestarts", l.random.IntN(3))
}

// step does one thing with a server.
func (l *lives) step(name string) {
	s := l.Server(name)
	signal := func(sig syscall.Signal) {
		if pid := s.Status().PID; pid != 0 {
			_ = syscall.Kill(pid, sig) // it may be gone
		}
	}
	steps := []func(){
		func() { l.command(name, "start", s.Start) },
		func() { l.command(name, "stop", s.Stop) },
		func() { l.command(name, "restart", s.Restart) },
		func() { l.call(name, tool("echo", args{"text": "x"})) },
		func() { l.call(name, tool("sleep", args{"ms": 50})) },
		func() { l.call(name, tool("hang", nil)) },
		func() { l.call(name, tool("crash", args{"code": 3})) },
		func() { l.call(name, tool("close_stdout", nil)) },
		func() { l.call(name, tool("big", args{"bytes": 300_000})) },
		func() { signal(syscall.SIGKILL) },
		func() { signal(syscall.SIGTERM) },
		func() { signal(syscall.SIGSTOP) },
		func() { signal(syscall.SIGCONT) },
		func() { l.servers[name] = l.text(name); l.apply(l.servers) },
	}
	steps[l.random.IntN(len(steps))]()
}

// command gives a command in the background; it has an outcome in time.
func (l *lives) command(name, what string, do func(Context) error) {
	l.outcome(name+" "+what, patience, do)
}

// call makes a call in the background.
func (l *lives) call(name string, c *source.Call) {
	c.Timeout = time.Duration(1+l.random.IntN(1500)) * time.Millisecond
	s := l.Server(name)
	l.outcome(fmt.Sprintf("%s: the call %s of %s", name, c.Params, c.Timeout), c.Timeout, func(ctx Context) error {
		_, err := s.Call(ctx, c)
		return err
	})
}

// outcome makes sure that something ends within its time, in a way that is told apart.
func (l *lives) outcome(what string, within time.Duration, do func(Context) error) {
	l.waiting.Go(func() { // ends with do
		ctx, cancel := context.WithTimeout(context.Background(), within+patience)
		defer cancel()
		err := do(ctx)
		_, failed := errors.AsType[*source.Failure](err)
		_, answered := errors.AsType[*protocol.Error](err)
		switch {
		case ctx.Err() != nil:
			l.t.Errorf("%s: no outcome", what)
		case err != nil && !failed && !answered:
			l.t.Errorf("%s: %v", what, err)
		}
	})
}

// rest waits until nothing moves any more, and what is there is what is said.
func (l *lives) rest() {
	l.t.Helper()
	for name := range l.servers {
		eventually(l.t, name+" is as it is said to be", func() bool { return l.fits(name) })
	}
}

// fits reports whether the processes of a server are those of its state.
func (l *lives) fits(name string) bool {
	before := l.Server(name).Status()
	pids := l.processes(name)
	after := l.Server(name).Status()
	switch {
	case before.State != after.State || before.PID != after.PID:
		return false // it moves
	case before.State == source.Ready:
		return slices.Contains(pids, before.PID)
	case before.State == source.Starting, before.State == source.Stopping:
		return false // it is on its way
	}
	return len(pids) == 0 && before.PID == 0
}

// processes returns those that have the mark and belong to a server; to any when that is
// empty. A server passes its name on in its environment.
func (l *lives) processes(server string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(environ, []byte("GARRA_LIVES="+l.mark+"\x00")) { // gone
			continue
		}
		if server != "" && !bytes.Contains(environ, []byte("GARRA_LIFE="+server+"\x00")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/environ", &pid); err == nil && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// used is how many descriptors this process has open.
func (l *lives) used() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		l.t.Fatal(err)
	}
	return len(entries)
}
