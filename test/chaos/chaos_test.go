// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/test/rig"
)

const (
	waves      = 6   // about a dozen servers misbehave at the same time
	quietCalls = 300 // in quiet times before each wave
)

// TestChaos has servers misbehave, wave after wave, beside healthy ones that are called
// all the time. No call of those is lost or becomes much slower, what garra says of
// the others is true, and nothing of them is left.
//
// Quiet times are between the waves, so that whatever else the machine does weighs on
// both.
func TestChaos(t *testing.T) {
	h := rig.NewHome(t)
	entries := make(map[string]rig.Entry)
	for _, name := range healthy() {
		entries[name] = rig.Misbehaving(withTools(nil)...)
	}
	h.Configure(entries)
	few := goroutinesAtRest(h)

	g := h.Serve("--log-level", "warn")
	g.Ready(healthy()...)
	c := &chaos{t: t, gateway: g, token: g.Token(), healthy: entries}
	l := startLoad(t, g, c.token)
	l.calls(t, quietCalls) // to warm up
	before, running := rig.UsageOf(t, g.PID), rig.Descendants(g.PID)
	l.forget()

	cases := slices.Concat(neverReady(t, h), badTalkers(), badEnders(h), badNeighbours(h))
	cases = slices.DeleteFunc(cases, func(m misbehaviour) bool { return !strings.Contains(m.name, *only) })
	for i := range waves {
		wave := every(cases, waves, i)
		l.become(false)
		l.calls(t, quietCalls)
		l.become(true)
		t.Run(fmt.Sprintf("wave %d", i+1), func(t *testing.T) { c.run(t, wave) })
		c.calm(running)
		t.Logf("wave %d: %s", i+1, l.lately())
	}
	l.stop(t)
	l.check(t)
	t.Logf("%d misbehaviours", len(cases))
	c.checkLeft(before, few)
}

// every returns each step-th element behind the first few, so that what is alike is in
// different waves.
func every(cases []misbehaviour, step, first int) (wave []misbehaviour) {
	for i := first; i < len(cases); i += step {
		wave = append(wave, cases[i])
	}
	return wave
}

// A chaos is a run of TestChaos.
type chaos struct {
	t       *testing.T
	gateway *rig.Gateway
	token   string
	healthy map[string]rig.Entry
}

// run adds servers to the configuration and looks at what becomes of each.
func (c *chaos) run(t *testing.T, wave []misbehaviour) {
	entries := maps.Clone(c.healthy)
	for _, m := range wave {
		entries[m.name] = m.entry
	}
	c.gateway.Replace("mcp.json", rig.MCPJSON(t, entries))
	rig.Eventually(t, rig.Patience, "the wave is there", func() bool {
		return len(c.gateway.Servers()) == len(entries)
	})
	look := &look{gateway: c.gateway}
	for _, m := range wave {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			client := rig.Greet(t, rig.NewWeb(c.gateway.URL(""), c.token))
			(&victim{misbehaviour: &m, t: t, gateway: c.gateway, client: client, look: look}).check()
			if err := client.HangUp(); err != nil {
				t.Error(err)
			}
		})
	}
}

// calm takes the servers out again, and waits until only those processes are there
// that were before, whoever the parent of the others is by now.
func (c *chaos) calm(running []rig.Process) {
	c.t.Helper()
	c.gateway.Replace("mcp.json", rig.MCPJSON(c.t, c.healthy))
	rig.Eventually(c.t, rig.Patience, "nothing of the wave is left", func() bool {
		return len(c.gateway.Servers()) == len(c.healthy) && len(rig.Descendants(c.gateway.PID)) == len(running) &&
			len(rig.ProcessesOf(c.gateway.Dir)) <= len(running)+1
	})
	if gone := len(running) - len(rig.Survivors(running)); gone > 0 {
		c.t.Errorf("%d processes of healthy servers ended", gone)
	}
}

// checkLeft compares what garra holds with what it held before.
func (c *chaos) checkLeft(before rig.Usage, few int) {
	c.t.Helper()
	g := c.gateway
	rig.Eventually(c.t, 2*rig.Patience, "garra holds what it held", func() bool {
		now := rig.UsageOf(c.t, g.PID)
		return now.Descriptors <= before.Descriptors+rig.SlackDescriptors
	})
	after := rig.UsageOf(c.t, g.PID)
	c.t.Logf("before: %+v; after: %+v", before, after)
	if z := rig.Zombies(rig.Descendants(g.PID)); len(z) > 0 {
		c.t.Errorf("zombies: %v", z)
	}
	many := rig.GoroutinesOf(g)
	c.t.Logf("%d goroutines, and %d in a gateway that did nothing", many, few)
	if many > few+rig.SlackGoroutines {
		c.t.Errorf("goroutines are left")
	}
}

// goroutinesAtRest is how many goroutines a gateway has that did nothing.
func goroutinesAtRest(h *rig.Home) int {
	g := h.Serve()
	g.Ready(healthy()...)
	return rig.GoroutinesOf(g)
}
