// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A stage is a server whose runs are played by the test, in the fake time of
// testing/synctest.
type stage struct {
	*Server
	lag     time.Duration   // between a stop and the end of the run
	mended  atomic.Bool     // what a failed run's cause becomes
	look    func()          // is called when the cause is looked for; may be nil
	stays   chan struct{}   // what a run that is stopped leaves behind; nil when nothing
	refusal *source.Failure // of starts by a person; nil for none

	mu     sync.Mutex // guards what follows
	runs   []*played
	live   int
	bad    []string // what must not have happened
	events []source.Event
}

// A played run does what the test says.
type played struct {
	*Run
	ends chan Outcome
	link *playedLink
}

// A playedLink has an answer to calls, or an error.
type playedLink struct {
	answered atomic.Bool
	err      func() error  // nil for an answer
	hold     chan struct{} // nil, or closed when calls are answered
	calls    atomic.Int32
	last     atomic.Pointer[source.Call]
}

func (l *playedLink) Call(_ Context, c *source.Call) (Raw, error) {
	l.calls.Add(1)
	l.last.Store(c)
	if l.hold != nil {
		<-l.hold
	}
	if l.err != nil {
		return nil, l.err()
	}
	return Raw(`{}`), nil
}

func (l *playedLink) Notify(string, Raw) {}

func (l *playedLink) Answered() bool { return l.answered.Load() }

// newStage starts a server. It is to be closed within the bubble.
func newStage(entry *mcpconfig.Server, change ...func(*Options)) *stage {
	s := &stage{}
	options := Options{Hooks: source.Hooks{Event: s.told}}
	for _, c := range change {
		c(&options)
	}
	s.Server = New(entry, s, options)
	s.begin(nil)
	return s
}

// close ends the owner and waits for it.
func (s *stage) close(t *testing.T) {
	t.Helper()
	s.end(source.Fail(source.ServerStopped, s.name, "garra is stopping"))
	<-s.done
	synctest.Wait()
	for _, bad := range s.problems() {
		t.Error(bad)
	}
}

// Run implements Runner: the run lasts until the test ends it, or the owner.
func (s *stage) Run(ctx Context, r *Run) Outcome {
	p := &played{Run: r, ends: make(chan Outcome, 1), link: &playedLink{}}
	s.mu.Lock()
	s.live++
	if s.live > 1 {
		s.bad = append(s.bad, fmt.Sprintf("%d runs at the same time", s.live))
	}
	s.runs = append(s.runs, p)
	s.mu.Unlock()
	began := time.Now()
	var out Outcome
	select {
	case out = <-p.ends:
	case <-ctx.Done():
		if s.lag > 0 {
			time.Sleep(s.lag) // the process takes its time to stop
		}
		if s.stays != nil {
			out = Outcome{Failure: source.Fail(source.ServerFailed, s.name, "still running"), Leftover: s.stays}
		}
	}
	out.Began = began
	s.mu.Lock()
	s.live--
	s.mu.Unlock()
	return out
}

// Obstacle implements Runner.
func (s *stage) Obstacle(Context, *mcpconfig.Server) *source.Failure {
	if s.look != nil {
		s.look()
	}
	if s.mended.Load() {
		return nil
	}
	return source.Fail(source.ServerFailed, s.name, "no such command")
}

// Edited implements Runner.
func (s *stage) Edited(old, next *mcpconfig.Server) bool { return old.NeedsRestart(next) }

// ByHand implements Runner.
func (s *stage) ByHand(*mcpconfig.Server) *source.Failure { return s.refusal }

func (s *stage) told(e source.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	if e.Kind == source.EventState && !possible(e.From, e.State) {
		s.bad = append(s.bad, fmt.Sprintf("moved from %s to %s", e.From, e.State))
	}
}

// problems returns what must not have happened.
func (s *stage) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bad)
}

// count returns how many runs there were.
func (s *stage) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// running returns how many runs there are.
func (s *stage) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// last returns the newest run, once all is quiet.
func (s *stage) last() *played {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[len(s.runs)-1]
}

// ready makes the newest run ready.
func (s *stage) ready() {
	p := s.last()
	p.Ready(p.link, &source.Hello{})
	synctest.Wait()
}

// crash ends the newest run.
func (s *stage) crash() {
	s.last().ends <- Outcome{Failure: source.Fail(source.ServerCrashed, s.name, "it crashed")}
	synctest.Wait()
}

// giveUp ends the newest run by a cause that trying again can't mend.
func (s *stage) giveUp() {
	s.last().ends <- Outcome{
		Failure: source.Fail(source.ServerFailed, s.name, "no such command"), Permanent: true,
	}
	synctest.Wait()
}

// is makes sure that the server is in a state, once all is quiet.
func (s *stage) is(t *testing.T, want source.State) source.Status {
	t.Helper()
	synctest.Wait()
	now := s.Status()
	if now.State != want {
		t.Fatalf("%s, want %s; %+v", now.State, want, now)
	}
	return now
}

// plain is an entry with the default policy, as NewServer makes it.
func plain(change ...func(*mcpconfig.Server)) *mcpconfig.Server {
	e := mcpconfig.NewServer("s", mcpconfig.Position{File: "mcp.json", Line: 1}, mcpconfig.Settings{
		DefaultTimeout: mcpconfig.DefaultTimeout,
	})
	e.Transport, e.Command = mcpconfig.Stdio, "server"
	for _, c := range change {
		c(e)
	}
	return e
}

// scene plays in a bubble of its own.
func scene(t *testing.T, name string, play func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, play)
	})
}

// hello asks for the server as a call does, in the background.
func hello(ctx context.Context, s *stage) <-chan error {
	err := make(chan error, 1)
	go func() { // ends when the server is ready or won't be; the channel's reader waits
		_, e := s.Hello(ctx)
		err <- e
	}()
	synctest.Wait()
	return err
}

// inBackground does something and hands over what came of it.
func inBackground(do func() error) <-chan error {
	err := make(chan error, 1)
	go func() { err <- do() }() // ends with do; the channel's reader waits for it
	synctest.Wait()
	return err
}

// restart restarts, lets meanwhile play, and returns what came of it.
func restart(t *testing.T, s *stage, meanwhile func()) error {
	t.Helper()
	done := inBackground(func() error { return s.Restart(t.Context()) })
	meanwhile()
	return <-done
}

// pass lets virtual time pass.
func pass(d time.Duration) { time.Sleep(d) }
