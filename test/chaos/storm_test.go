// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

const (
	stormServers  = 20
	stormSessions = 50 // at the same time
	stormRestarts = 2  // that each server may have in a row

	// wakeEvery is how often calls may start a parked server (docs/states.md).
	wakeEvery = 30 * time.Second
)

// TestStorm has twenty servers crash at the same time, and again at every start, while
// sessions come and go that want them. What is started is what the policy of each
// server allows, however many ask.
func TestStorm(t *testing.T) {
	h := rig.NewHome(t)
	s := newStorm(t, h)
	began := time.Now()
	g := h.Serve("--log-level", "warn")
	s.gateway, s.token = g, g.Token()
	g.Ready(append(s.onceReady(), "healthy")...)
	for _, name := range s.onceReady() {
		rig.Signalled(t, g.Server(name).PID, syscall.SIGKILL)
	}
	s.sessions()
	rig.Eventually(t, rig.Patience, "all are given up", func() bool {
		parked := 0
		for _, server := range g.Servers() {
			if server.State == "parked" {
				parked++
			}
		}
		return parked == stormServers
	})
	s.sessions() // each server is tried once more at most, for all of them
	rig.Eventually(t, rig.Patience, "only the healthy server and its guardian are left", func() bool {
		return len(rig.Descendants(g.PID)) == 2
	})
	s.check(time.Since(began))
}

// A storm is a run of TestStorm. The first half of the servers never was ready, the
// other half was once.
type storm struct {
	t       *testing.T
	home    *rig.Home
	gateway *rig.Gateway
	token   string
}

func newStorm(t *testing.T, h *rig.Home) *storm {
	t.Helper()
	s := &storm{t: t, home: h}
	noted := func(name string) []string { return []string{"--note-start", s.file(name)} }
	entries := map[string]rig.Entry{"healthy": rig.Misbehaving(withTools(noted("healthy"))...)}
	for i := range stormServers {
		name := s.name(i)
		crash := `exec "$0" "$@" --exit-at-start --exit-code 1`
		if i >= stormServers/2 {
			crash = `if [ -e "$STARTED" ]; then ` + crash + `; fi; exec "$0" "$@"`
		}
		entries[name] = impatient(quickly(shell(crash, noted(name)...))).
			With("env", map[string]string{"STARTED": s.file(name)}).
			With("maxRestarts", stormRestarts).With("restartDelaySecs", 0.5)
	}
	h.Configure(entries)
	return s
}

func (s *storm) name(i int) string { return fmt.Sprintf("crashes-%d", i) }

// file is where a server notes its starts.
func (s *storm) file(name string) string { return s.home.Path("starts-of-" + name) }

// onceReady names the servers that are ready at first.
func (s *storm) onceReady() (names []string) {
	for i := stormServers / 2; i < stormServers; i++ {
		names = append(names, s.name(i))
	}
	return names
}

// sessions lets clients come, want something of a server that crashes and of the
// healthy one, and go.
func (s *storm) sessions() {
	s.t.Helper()
	var running sync.WaitGroup
	failures := make(chan error, stormSessions)
	for i := range stormSessions {
		running.Go(func() { failures <- s.session(i) }) // ends with the session; awaited below
	}
	running.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			s.t.Error(err)
		}
	}
}

// session is one client's: first it wants to speak to one server alone, and then to
// all.
func (s *storm) session(i int) error {
	name := s.name(i % stormServers)
	alone := rig.NewWeb(s.gateway.URL(name), s.token)
	if m, err := alone.Ask(protocol.MethodInitialize, rig.Greeting(`{}`), nil); err != nil {
		return fmt.Errorf("speaking to %s alone: %w", name, err)
	} else if m.Error == nil {
		if err := alone.HangUp(); err != nil {
			return err
		}
	}
	all := rig.NewWeb(s.gateway.URL(""), s.token)
	if _, err := all.Ask(protocol.MethodInitialize, rig.Greeting(`{}`), nil); err != nil {
		return err
	}
	if err := all.Tell(protocol.NoteInitialized, `{}`); err != nil {
		return err
	}
	if _, err := all.Ask(protocol.MethodToolsCall, rig.CallParams(name+"__echo", `{}`), nil); err != nil {
		return fmt.Errorf("calling %s: %w", name, err) // that it fails is as it should be, if it is answered
	}
	m, err := all.Ask(protocol.MethodToolsCall, rig.CallParams("healthy__echo", `{"text":"well"}`), nil)
	if err != nil {
		return err
	}
	if text, ok := rig.TextOf(m); !ok || text != "well" {
		return fmt.Errorf("the healthy server: %s%s", m.Result, m.Error)
	}
	return all.HangUp()
}

// check counts the starts, which the servers noted themselves.
func (s *storm) check(lasted time.Duration) {
	s.t.Helper()
	least := 1 + stormRestarts
	most := least + 1 + int(lasted/wakeEvery)
	total := 0
	for i := range stormServers {
		n := starts(s.t, s.file(s.name(i)))
		if n < least || n > most {
			s.t.Errorf("%s was started %d times, not %d to %d", s.name(i), n, least, most)
		}
		total += n
	}
	if n := starts(s.t, s.file("healthy")); n != 1 {
		s.t.Errorf("the healthy server was started %d times", n)
	}
	s.t.Logf("%d servers were started %d times within %s, for %d sessions", stormServers, total,
		lasted.Round(time.Second), 4*stormSessions)
}

// TestSessionsTakeTheirProcesses lets clients come and go that have processes of their
// own.
func TestSessionsTakeTheirProcesses(t *testing.T) {
	const clients, times = 20, 3
	h := rig.NewHome(t)
	file := h.Path("starts")
	h.Configure(map[string]rig.Entry{
		"own": rig.Misbehaving("--note-start", file, "--fork-worker", h.Path("worker")).With("sharing", "session"),
	})
	g := h.Serve("--log-level", "warn")
	g.Ready("own")
	token, running := g.Token(), len(rig.Descendants(g.PID))
	for range times {
		var open []*rig.Client
		for range clients {
			c := rig.Greet(t, rig.NewWeb(g.URL(""), token))
			if text := c.Text("own__echo", `{"text":"mine"}`); text != "mine" {
				t.Errorf("echo says %q", text)
			}
			open = append(open, c)
		}
		for _, c := range open {
			if err := c.HangUp(); err != nil {
				t.Error(err)
			}
		}
		rig.Eventually(t, rig.Patience, "the processes of the sessions are gone", func() bool {
			return len(rig.Descendants(g.PID)) == running
		})
	}
	if n := starts(t, file); n != 1+clients*times {
		t.Errorf("%d processes were started for %d sessions, and one for all", n, clients*times)
	}
	if z := rig.Zombies(rig.Descendants(g.PID)); len(z) > 0 {
		t.Errorf("zombies: %v", z)
	}
}
