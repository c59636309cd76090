// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/test/rig"
)

const (
	healthyServers   = 10
	clientsPerServer = 2
	directServers    = 6
	bigBytes         = 100_000
	steps            = 3 // of a call that reports progress

	// Tools take their time, as real ones do. It makes the bound below one on garra:
	// twice this leaves room for what the scheduler of a small machine adds, and none
	// for a gateway that stands still.
	thinkMS = 24

	// pause is between two calls of a client. All of it takes less than half a core, so
	// that there is something left to misbehave with.
	pause = 100 * time.Millisecond

	// maxSlowdown is how many times longer than in quiet times calls may take. Servers
	// that misbehave also slow the machine down: how much is seen by servers that are
	// called without garra between, and doesn't count.
	maxSlowdown = 2
)

// healthy names the healthy servers.
func healthy() []string {
	names := make([]string, healthyServers)
	for i := range names {
		names[i] = fmt.Sprintf("healthy-%d", i)
	}
	return names
}

// A load is clients that call healthy servers all the time, most of them through
// garra and some directly.
type load struct {
	end     chan struct{} // closed when they are to stop
	running sync.WaitGroup
	clients []*loader

	mu              sync.Mutex // guards all below
	chaotic         bool
	through, direct measured
	told            struct{ quiet, chaotic int } // how many calls lately told of
	failures        []string
}

// measured is how long calls took.
type measured struct{ quiet, chaotic times }

func (m *measured) String() string { return fmt.Sprintf("quiet: %s; chaotic: %s", m.quiet, m.chaotic) }

// slowdown is how much longer than in quiet times it took until a fraction of the calls
// was answered.
func (m *measured) slowdown(fraction float64) float64 {
	return float64(m.chaotic.percentile(fraction)) / float64(m.quiet.percentile(fraction))
}

type times []time.Duration

// percentile returns the time within which a fraction of the calls were answered.
func (d times) percentile(fraction float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(int(fraction*float64(len(sorted))), len(sorted)-1)]
}

func (d times) String() string {
	if len(d) == 0 {
		return "no calls"
	}
	of := func(fraction float64) time.Duration { return d.percentile(fraction).Round(time.Millisecond / 10) }
	return fmt.Sprintf("%d calls, median %s, p99 %s, longest %s", len(d), of(0.5), of(0.99), of(1))
}

// startLoad connects the clients and lets them call.
func startLoad(t *testing.T, g *rig.Gateway, token string) *load {
	t.Helper()
	l := &load{end: make(chan struct{})}
	for i, name := range slices.Repeat(healthy(), clientsPerServer) {
		endpoint, prefix := name, ""
		if i%2 == 0 {
			endpoint, prefix = "", name+"__"
		}
		l.add(rig.Greet(t, rig.NewWeb(g.URL(endpoint), token)), prefix, &l.through)
	}
	for range directServers {
		path, args := misbehave.Command()
		l.add(rig.Greet(t, rig.StartPipe(t, exec.CommandContext(t.Context(), path, args...))), "", &l.direct)
	}
	return l
}

// add lets one more client call.
func (l *load) add(client *rig.Client, prefix string, took *measured) {
	c := &loader{load: l, Client: client, prefix: prefix, number: len(l.clients), took: took}
	l.clients = append(l.clients, c)
	l.running.Go(c.callOn) // ends when the load does, which waits for it
}

// stop ends the load.
func (l *load) stop(t *testing.T) {
	t.Helper()
	close(l.end)
	l.running.Wait()
	for _, c := range l.clients {
		if err := c.HangUp(); err != nil {
			t.Errorf("client %d hangs up: %v", c.number, err)
		}
	}
}

// become makes quiet times chaotic, or the other way round.
func (l *load) become(chaotic bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chaotic = chaotic
}

// calls waits for so many more calls in quiet times.
func (l *load) calls(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.through.quiet)
	}
	until := count() + more
	rig.Eventually(t, rig.Patience, "calls are answered", func() bool { return count() >= until })
}

// lately tells of the calls through garra since it was asked last.
func (l *load) lately() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent := measured{l.through.quiet[l.told.quiet:], l.through.chaotic[l.told.chaotic:]}
	l.told.quiet, l.told.chaotic = len(l.through.quiet), len(l.through.chaotic)
	return recent.String()
}

// forget forgets the calls so far.
func (l *load) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.through, l.direct = measured{}, measured{}
}

// isChaotic tells in which times a call begins.
func (l *load) isChaotic() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chaotic
}

// answered takes what came of a call. One that saw both times was in chaotic ones.
func (c *loader) answered(chaotic bool, took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failures = append(c.failures, fmt.Sprintf("client %d: %v", c.number, err))
	}
	if chaotic || c.load.chaotic {
		c.took.chaotic = append(c.took.chaotic, took)
	} else {
		c.took.quiet = append(c.took.quiet, took)
	}
}

// check fails for each lost call, and when calls were too slow in chaotic times.
func (l *load) check(t *testing.T) {
	t.Helper()
	for _, failure := range l.failures {
		t.Error(failure)
	}
	t.Logf("through garra: %s; directly: %s", &l.through, &l.direct)
	// The slowest hundredth is what is promised. The median tells more on a machine that
	// is so busy with other things that quiet times aren't.
	for _, fraction := range []float64{0.5, 0.99} {
		slowdown, machine := l.through.slowdown(fraction), max(1, l.direct.slowdown(fraction))
		t.Logf("p%.0f: %.2f times as long as in quiet times, of direct calls %.2f times",
			100*fraction, slowdown, machine)
		if slowdown > maxSlowdown*machine {
			t.Errorf("garra was held up: p%.0f took %.2f times as long", 100*fraction, slowdown)
		}
	}
}

// A loader is one client of a load.
type loader struct {
	*load
	*rig.Client
	prefix string // of the names of tools
	number int
	took   *measured // guarded by the load's mu
	made   int
}

// callOn calls until the load ends.
func (c *loader) callOn() {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-c.end:
			return
		case <-tick.C:
		}
		chaotic, began := c.isChaotic(), time.Now()
		err := c.once()
		c.answered(chaotic, time.Since(began), err)
	}
}

// once makes one call, of three kinds in turn, and compares its answer.
func (c *loader) once() error {
	c.made++
	want := fmt.Sprintf("%d-%d", c.number, c.made)
	tool, arguments := "sleep", fmt.Sprintf(`{"ms":%d,"text":%q}`, thinkMS, want)
	switch c.made % 3 {
	case 1:
		tool, arguments = "big", fmt.Sprintf(`{"bytes":%d}`, bigBytes)
		want = strings.Repeat("b", bigBytes)
	case 2:
		tool, arguments = "progress", fmt.Sprintf(`{"n":%d,"ms":%d,"text":%q}`, steps, thinkMS/steps, want)
	}
	params := fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":%d}}`, c.prefix+tool, arguments, c.made)
	progress := 0
	m, err := c.Ask(protocol.MethodToolsCall, params, func() { progress++ })
	if err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	text, ok := rig.TextOf(m)
	switch {
	case !ok:
		return fmt.Errorf("%s: %.500s", tool, cmp.Or(string(m.Error), string(m.Result)))
	case text != want:
		return fmt.Errorf("%s: %.100q instead of %.100q", tool, text, want)
	case tool == "progress" && progress != steps:
		return fmt.Errorf("progress of %d steps out of %d", progress, steps)
	}
	return nil
}
