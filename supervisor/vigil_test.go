// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervisor

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/source"
)

// watchful makes the times of a vigil short.
func watchful(o *Options) {
	o.limits.look, o.limits.suspended = 20*time.Millisecond, 200*time.Millisecond
	o.limits.spinning, o.limits.whole = 300*time.Millisecond, 0.1 // of a processor that others want too
	o.limits.idle, o.limits.answer = 50*time.Millisecond, 150*time.Millisecond
}

// wedged waits until a server was given up, and returns what was told of that.
func (r *rig) wedged(name string) source.Stop {
	r.t.Helper()
	var last source.Stop
	eventually(r.t, "given up", func() bool {
		for _, stop := range r.Server(name).Stops() {
			last = stop
		}
		return last.Cause == string(source.ReasonWedged)
	})
	r.ready(name)
	return last
}

func TestSuspendedServersAreFound(t *testing.T) {
	t.Parallel()
	for name, inFlight := range map[string]bool{"idle": false, "with a call in flight": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, watchful, withHistory)
			s := r.only(misbehaving())
			pid := s.Status().PID
			var call sync.WaitGroup
			defer call.Wait()
			if inFlight {
				call.Go(func() { // ends with the run
					_, err := s.Call(t.Context(), tool("hang", nil))
					failed(t, err, source.ServerCrashed)
				})
				eventually(t, "the call in flight", linkOf(s).busy)
			}
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			contains(t, r.wedged("s").Message, "wedged: it is suspended")
			if now := s.Status(); now.PID == pid || now.Restarts != 1 {
				t.Errorf("%+v", now)
			}
		})
	}
}

// One that is woken up in time goes on.
func TestSuspendedForAMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { watchful(o); o.limits.suspended, o.limits.idle = time.Hour, time.Hour })
	s := r.only(misbehaving())
	pid := s.Status().PID
	for range 2 {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		eventually(t, "suspended", func() bool { v, _ := s.running.Load().Look(); return v.Stopped })
		_ = syscall.Kill(pid, syscall.SIGCONT)
		eventually(t, "going on", func() bool { v, ok := s.running.Load().Look(); return ok && !v.Stopped })
	}
	if got := pidOf(t, s); got != pid {
		t.Errorf("process %d, was %d", got, pid)
	}
}

func TestSilentServersAreFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, watchful, withHistory)
	r.apply(map[string]fields{"s": misbehaving("--stop-reading-stdin")})
	contains(t, r.wedged("s").Message, "wedged: it has answered none of 3 questions")
}

// What doesn't answer a ping but does its work is left alone, and so is what is busy.
func TestSlowServersAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flags []string
		use   func(t *testing.T, s *Server)
	}{
		"without ping": {[]string{"--hang-on", "ping"}, func(t *testing.T, s *Server) {
			eventually(t, "asked often", func() bool { return linkOf(s).issued(30) })
			contains(t, use(t, s, "heard", nil), "ping", "tools/list")
		}},
		"in a long call that nothing else gets past": {nil, func(t *testing.T, s *Server) {
			use(t, s, "sleep_serial", args{"ms": 2500})
		}},
		"with two such calls at once": {nil, func(t *testing.T, s *Server) {
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { use(t, s, "sleep_serial", args{"ms": 1000}) })
			}
			calls.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, watchful)
			s := r.only(misbehaving(test.flags...))
			pid := s.Status().PID
			test.use(t, s)
			if got := pidOf(t, s); got != pid {
				t.Errorf("process %d, was %d", got, pid)
			}
		})
	}
}

// A call that was given up may still be at work, so its server gets more patience.
func TestAfterACallWasGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, watchful)
	s := r.only(misbehaving())
	pid := s.Status().PID
	late := tool("sleep_serial", args{"ms": 1200}) // longer than three questions, shorter than ten
	late.Timeout = 50 * time.Millisecond
	_, err := s.Call(t.Context(), late)
	failed(t, err, source.CallTimeout)
	if got := pidOf(t, s); got != pid {
		t.Errorf("process %d, was %d", got, pid)
	}
}

func TestServersThatComputeForNobodyAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, watchful)
	entry := misbehaving()
	command := append([]string{entry["command"].(string)}, entry["args"].([]string)...)
	entry["command"] = "/bin/sh"
	script := `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (while :; do :; done) & done; exec "$@"`
	entry["args"] = append([]string{"-c", script, "sh"}, command...)
	s := r.only(entry)
	eventually(t, "told", func() bool { return r.Saw("it has used a whole processor for 300ms") != "" })
	if now := s.Status(); now.State != source.Ready || now.Restarts != 0 {
		t.Errorf("%+v", now)
	}
}
