// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/garraia/garra/test/rig"
)

var (
	soakFor     = flag.Duration("soak", 3*time.Second, "how long TestSoak goes on, after a warm-up of a quarter of it")
	soakClients = flag.Int("soak-clients", 12, "how many clients TestSoak has")
	soakSeed    = flag.Uint64("soak-seed", uint64(time.Now().UnixNano()), "what chance TestSoak begins with")
)

// The servers of TestSoak. Nothing is done to the steady one, so each of its calls
// succeeds; the others are killed, edited, removed and put back.
const (
	steady  = "steady"
	crashy  = "crashy"
	edited  = "edited"
	slow    = "slow"
	fleeing = "fleeing"
)

// TestSoak has many clients of both eras, over HTTP and by `garra stdio`, call
// servers of which one crashes each second, and which are edited, removed and put back
// meanwhile. Each call carries a value of its own, which comes back once and to its
// caller alone, or the call is answered with an error that says why. Nothing is left
// of it in the end: garra holds as much after it as after a warm-up, and so do its
// folders.
//
// `make soak SOAKFLAGS='-soak 1h'` is how to run it for long.
func TestSoak(t *testing.T) {
	t.Parallel()
	t.Logf("-soak-seed %d", *soakSeed)
	h := rig.NewHome(t)
	s := &soak{t: t, home: h, tally: newTally(), edition: make(map[string]int)}
	s.configure(true)
	fresh := h.Serve("--log-level", "warn")
	fresh.Ready(steady, crashy, edited, slow, fleeing)
	few := rig.GoroutinesOf(fresh)

	s.gateway = h.Serve("--log-level", "warn")
	s.token = s.gateway.Token()
	s.run(max(*soakFor/4, time.Second))
	before, running := s.settled(rig.Usage{Descriptors: 1 << 20, ResidentKB: 1 << 30}, 0)
	files := h.Files()
	s.tally = newTally()
	s.run(*soakFor)
	after, _ := s.settled(before, running)

	t.Logf("after the warm-up: %+v, %d processes; after %s: %+v", before, running, *soakFor, after)
	rig.CheckUsage(t, before, after)
	if diff := cmp.Diff(files, h.Files()); diff != "" {
		t.Errorf("files come and stay, or go: %s", diff)
	}
	if z := rig.Zombies(rig.Descendants(s.gateway.PID)); len(z) > 0 {
		t.Errorf("zombies: %v", z)
	}
	many := rig.GoroutinesOf(s.gateway)
	t.Logf("%d goroutines, and %d in a gateway that did nothing", many, few)
	if many > few+rig.SlackGoroutines {
		t.Errorf("goroutines are left")
	}
}

// disturbed are the servers that are killed, edited and restarted.
func disturbed() []string { return []string{crashy, edited, slow} }

// A soak is a run of TestSoak.
type soak struct {
	t       *testing.T
	home    *rig.Home
	gateway *rig.Gateway
	token   string
	tally   *tally
	edition map[string]int // what is edited in a server's entry
}

// configure writes mcp.json, with all servers or without the fleeing one.
func (s *soak) configure(whole bool) {
	s.t.Helper()
	// A call waits for a server that is to be started again if it has the time.
	often := func(name string, flags ...string) rig.Entry {
		return rig.Misbehaving(flags...).With("maxRestarts", 1_000_000).With("callTimeoutSecs", 5).
			With("env", map[string]string{"EDITION": fmt.Sprint(s.edition[name])})
	}
	list := map[string]rig.Entry{
		steady: rig.Misbehaving(),
		crashy: often(crashy, "--fork-worker", s.home.Path("worker")),
		edited: often(edited),
		slow:   often(slow, "--slow-init", "300ms"),
	}
	if whole {
		list[fleeing] = often(fleeing)
	}
	s.home.Replace("mcp.json", rig.MCPJSON(s.t, list))
}

// run lets the clients call for a time, and does to the servers what servers are
// done to.
func (s *soak) run(length time.Duration) {
	s.t.Helper()
	end := time.Now().Add(length)
	var clients sync.WaitGroup
	for i := range *soakClients {
		clients.Go(func() { // ends with the time; awaited below
			c := &soaker{soak: s, number: i, chance: rand.New(rand.NewPCG(*soakSeed, uint64(i)))}
			if err := c.callUntil(end); err != nil {
				s.tally.fail("client %d, %s: %v", i, c.kind(), err)
			}
		})
	}
	chance := rand.New(rand.NewPCG(*soakSeed, 1<<32))
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for i := 0; time.Now().Before(end); i++ {
		<-tick.C
		if i%2 == 0 {
			s.crash(chance)
		} else {
			s.disturb(chance)
		}
	}
	clients.Wait()
	for _, name := range disturbed() {
		s.edition[name]++ // an edit starts what waits after a crash
	}
	s.configure(true)
	s.t.Log(s.tally.report(length))
	for _, failure := range s.tally.failures {
		s.t.Error(failure)
	}
	if s.tally.calls < *soakClients {
		s.t.Errorf("%d clients made only %d calls", *soakClients, s.tally.calls)
	}
}

// crash kills a server that runs, and edits one that waits after a crash, which is a
// new chance for it: else all of them would wait for minutes by and by.
func (s *soak) crash(chance *rand.Rand) {
	s.t.Helper()
	var running, waiting []rig.ServerInfo
	for _, server := range s.gateway.Servers() {
		switch {
		case !slices.Contains(disturbed(), server.Name):
		case server.State == "ready":
			running = append(running, server)
		case server.State == "backoff":
			waiting = append(waiting, server)
		}
	}
	if len(running) > 0 {
		s.tally.count("done: kill -9", "")
		rig.Signalled(s.t, running[chance.IntN(len(running))].PID, syscall.SIGKILL)
	}
	if len(waiting) > 0 {
		s.tally.count("done: an entry edited that waits", "")
		s.edition[waiting[chance.IntN(len(waiting))].Name]++
		s.configure(true)
	}
}

// disturb does one other thing to the servers.
func (s *soak) disturb(chance *rand.Rand) {
	s.t.Helper()
	switch chance.IntN(3) {
	case 0:
		s.tally.count("done: an entry edited", "")
		s.edition[disturbed()[chance.IntN(3)]]++
		s.configure(true)
	case 1:
		s.tally.count("done: an entry removed", "")
		s.configure(false)
	case 2:
		s.tally.count("done: a restart", "")
		name := disturbed()[chance.IntN(3)]
		s.gateway.Admin(http.MethodPost, "/admin/mcp/"+name+"/restart", nil) // fails when it is killed meanwhile
	}
}

// settled waits until what the clients had is closed, and returns what garra holds
// then, and how many processes it has. Garbage is collected within two minutes.
func (s *soak) settled(before rig.Usage, running int) (rig.Usage, int) {
	s.t.Helper()
	rig.Eventually(s.t, rig.Patience, "the last configuration is read", func() bool {
		return s.gateway.Server(fleeing).Name != ""
	})
	s.gateway.Ready(steady, crashy, edited, slow, fleeing)
	var now rig.Usage
	var processes int
	calm := 0
	rig.Eventually(s.t, 2*rig.Patience, "everything of the clients is closed", func() bool {
		last := processes
		now, processes = rig.UsageOf(s.t, s.gateway.PID), len(rig.Descendants(s.gateway.PID))
		if calm++; processes != last {
			calm = 0
		}
		return calm > 50 && now.Descriptors <= before.Descriptors+rig.SlackDescriptors &&
			now.ResidentKB <= before.ResidentKB+rig.SlackKB && (running == 0 || processes == running)
	})
	return now, processes
}

// A tally counts what came of calls. It is safe for concurrent use.
type tally struct {
	mu       sync.Mutex // guards all below
	calls    int
	counts   map[string]int
	failures []string
}

func newTally() *tally { return &tally{counts: make(map[string]int)} }

func (a *tally) count(what, outcome string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts[strings.TrimSpace(what+" "+outcome)]++
}

func (a *tally) called() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
}

// maxFailures is how many are told in full.
const maxFailures = 20

func (a *tally) fail(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.counts["failures"]++; len(a.failures) < maxFailures {
		a.failures = append(a.failures, fmt.Sprintf(format, args...))
	}
}

func (a *tally) report(length time.Duration) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lines []string
	for what, n := range a.counts {
		lines = append(lines, fmt.Sprintf("%8d %s", n, what))
	}
	slices.SortFunc(lines, func(x, y string) int { return strings.Compare(x[9:], y[9:]) })
	return fmt.Sprintf("%d calls in %s:\n%s", a.calls, length, strings.Join(lines, "\n"))
}
