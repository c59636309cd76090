// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/internal/backoff"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A stage is a server whose runs are played.
type stage struct {
	*Server
	t      *testing.T
	broken atomic.Bool // the references can't be resolved

	mu     sync.Mutex // guards what follows
	runs   []*play
	states []source.State
}

// A play is a run that does as it is told.
type play struct {
	order  order
	report func(progress)
	ctx    Context
	end    chan outcome
}

// scene plays with a server in virtual time.
func scene(t *testing.T, name string, do func(t *testing.T, s *stage)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &stage{t: t}
			standard := standardLimits()
			options := &Options{limits: &standard, Hooks: source.Hooks{Event: func(e source.Event) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.states = append(s.states, e.State)
			}}}
			entry := entryOf("s")
			s.Server = newServer(entry, options)
			s.launch = s.play
			s.mended = func(*mcpconfig.Server) bool { return !s.broken.Load() }
			s.begin(entry)
			synctest.Wait()
			do(t, s)
			s.end(source.Fail(source.ServerUnknown, "s", "it is over"))
			<-s.done
		})
	})
}

// entryOf is an entry with the defaults.
func entryOf(name string) *mcpconfig.Server {
	entry := mcpconfig.NewServer(name, mcpconfig.Position{File: "mcp.json", Line: 1}, mcpconfig.Settings{})
	entry.Transport, entry.URL, entry.Timeout = mcpconfig.HTTP, "http://127.0.0.1:1", time.Minute
	return entry
}

func (s *stage) play(ctx Context, o order, report func(progress)) {
	p := &play{order: o, report: report, ctx: ctx, end: make(chan outcome)}
	s.mu.Lock()
	s.runs = append(s.runs, p) // the owner starts one at a time
	s.mu.Unlock()
	out := outcome{}
	select {
	case out = <-p.end:
	case <-ctx.Done():
	}
	report(progress{generation: o.generation, ended: &out})
}

// last returns the run of the moment.
func (s *stage) last() *play {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[len(s.runs)-1]
}

// count returns how many runs there were.
func (s *stage) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

func (s *stage) ready() {
	p := s.last()
	p.report(progress{generation: p.order.generation, link: newLink(s.Server), hello: &source.Hello{}})
	s.is(source.Ready)
}

func (s *stage) ends(out outcome) {
	if out.failure == nil {
		out.failure = source.Fail(source.ServerCrashed, "s", "played")
	}
	s.last().end <- out
	synctest.Wait()
}

// is makes sure of the state, and returns it all.
func (s *stage) is(want source.State) source.Status {
	s.t.Helper()
	synctest.Wait()
	status := s.Status()
	if status.State != want {
		s.t.Fatalf("it is %s, want %s", status.State, want)
	}
	return status
}

// startsAfter makes sure that the next run comes within the given times.
func (s *stage) startsAfter(least, most time.Duration) {
	s.t.Helper()
	n := s.count()
	pass(least - time.Millisecond)
	synctest.Wait()
	if s.count() != n {
		s.t.Fatalf("it was tried again before %s", least)
	}
	pass(most - least + 2*time.Millisecond)
	if s.is(source.Starting); s.count() != n+1 {
		s.t.Fatalf("it was not tried again within %s", most)
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }

func TestLifecycle(t *testing.T) {
	t.Parallel()
	scene(t, "failures in a row", func(_ *testing.T, s *stage) {
		for delay := 5 * time.Second; delay <= 80*time.Second; delay *= 2 {
			s.ends(outcome{})
			s.is(source.Backoff)
			s.startsAfter(delay*9/10, delay*11/10)
		}
		s.ends(outcome{})
		s.is(source.Parked)
		s.startsAfter(backoff.ParkedEvery*9/10, backoff.ParkedEvery*11/10)
		s.ready()
	})
	scene(t, "a parked server is woken once in a while", func(t *testing.T, s *stage) {
		for range 6 {
			s.ends(outcome{})
			if s.Status().State == source.Backoff {
				pass(100 * time.Second)
			}
		}
		s.is(source.Parked)
		n := s.count()
		results := make(chan error, 10)
		for range 10 {
			go func() { // ends with the call; the test waits for its error
				_, err := s.Hello(context.Background())
				results <- err
			}()
		}
		s.is(source.Starting)
		s.ends(outcome{})
		for range 10 {
			failed(t, <-results, source.ServerParked)
		}
		_, err := s.Hello(t.Context())
		failed(t, err, source.ServerParked)
		if s.count() != n+1 {
			t.Errorf("%d runs for ten calls", s.count()-n)
		}
	})
}

func TestLifecycleOfSessions(t *testing.T) {
	t.Parallel()
	scene(t, "lost sessions", func(t *testing.T, s *stage) {
		s.ready()
		s.ends(outcome{forgotten: true})
		s.is(source.Starting)
		s.ready()
		pass(29 * time.Second)
		s.ends(outcome{forgotten: true})
		s.is(source.Backoff)
		s.startsAfter(4500*time.Millisecond, 5500*time.Millisecond)
		s.ready()
		pass(time.Second)
		s.ends(outcome{forgotten: true})
		if status := s.is(source.Starting); status.Restarts != 3 {
			t.Errorf("%d restarts", status.Restarts)
		}
	})
	scene(t, "what can't be mended by trying", func(t *testing.T, s *stage) {
		s.ends(outcome{permanent: true})
		s.is(source.Failed)
		_, err := s.Hello(t.Context())
		failed(t, err, source.ServerFailed)
		s.startsAfter(10*time.Second, 10*time.Second)
		s.ends(outcome{permanent: true})
		s.broken.Store(true)
		n := s.count()
		pass(time.Hour)
		if s.is(source.Failed); s.count() != n {
			t.Errorf("%d runs while a reference was unresolved", s.count()-n)
		}
		s.broken.Store(false)
		s.startsAfter(0, 20*time.Second)
		s.ready()
	})
	scene(t, "never by itself", func(_ *testing.T, s *stage) {
		entry := entryOf("s")
		entry.MaxRestarts = 0
		_ = s.ask(context.Background(), func(o *owner) { o.entry = entry })
		s.ends(outcome{})
		s.is(source.Parked)
		pass(24 * time.Hour)
		s.is(source.Parked)
	})
}

func TestCommands(t *testing.T) {
	t.Parallel()
	background := func(do func(Context) error) <-chan error {
		result := make(chan error, 1)
		go func() { result <- do(context.Background()) }() // ends with the command; the test waits for its result
		synctest.Wait()
		return result
	}
	scene(t, "stop and start", func(t *testing.T, s *stage) {
		s.ready()
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		s.is(source.Stopped)
		starting := background(s.Start)
		also := background(s.Start)
		s.ready()
		for _, result := range []<-chan error{starting, also, background(s.Start)} {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		restarting := background(s.Restart)
		s.ends(outcome{})
		failed(t, <-restarting, source.ServerCrashed)
		stopped := background(s.Restart)
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		failed(t, <-stopped, source.ServerStopped)
		want := []source.State{
			source.Starting, source.Ready, source.Stopping, source.Stopped,
			source.Starting, source.Ready, source.Stopping, source.Starting, source.Backoff,
			source.Starting, source.Stopping, source.Stopped,
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slices.Equal(s.states, want) {
			t.Errorf("%v", s.states)
		}
	})
	scene(t, "gone", func(t *testing.T, s *stage) {
		s.ready()
		restarting := background(s.Restart)
		s.end(source.Fail(source.ServerUnknown, "s", "taken out"))
		failed(t, <-restarting, source.ServerUnknown)
		<-s.done
		_, err := s.Call(t.Context(), tool("x", nil))
		failed(t, err, source.ServerUnknown)
		failed(t, s.Stop(t.Context()), source.ServerUnknown)
	})
}

// What an edit changes decides what becomes of the session.
func TestEdits(t *testing.T) {
	t.Parallel()
	w := serve(t, &script{})
	other := serve(t, &script{})
	r := newRig(t)
	r.only(at(w.URL))
	generation := func() uint64 { return r.state("s", source.Ready).Hello.Generation }
	for _, c := range []struct {
		change string
		entry  fields
		want   uint64
	}{
		{"nothing", at(w.URL), 1},
		{"tools", at(w.URL).with("deniedTools", []string{"x"}), 1},
		{"time", at(w.URL).with("callTimeoutSecs", 7), 1},
		{"headers", at(w.URL).with("headers", args{"A": "b"}), 2},
		{"url", at(other.URL), 3},
	} {
		r.apply(map[string]fields{"s": c.entry})
		if got := generation(); got != c.want {
			t.Errorf("%s: generation %d, want %d", c.change, got, c.want)
		}
	}
	s := r.Server("s")
	r.apply(map[string]fields{"s": at(other.URL).with("disabled", true), "t": at(w.URL)})
	r.state("s", source.Disabled)
	_, err := s.Call(t.Context(), tool("x", nil))
	failed(t, err, source.ServerDisabled)
	failed(t, s.Start(t.Context()), source.ServerDisabled)
	failed(t, s.Stop(t.Context()), source.ServerDisabled)
	r.apply(map[string]fields{"t": at(w.URL), "local": {"command": "cat"}})
	if got := r.Names(); !slices.Equal(got, []string{"t"}) || r.Server("s") != nil || r.Server("local") != nil {
		t.Errorf("%v", got)
	}
	_, err = s.Call(t.Context(), tool("x", nil))
	failed(t, err, source.ServerUnknown)
}
