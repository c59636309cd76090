// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"time"
)

// The names of variants.
const (
	directName   = "direct pipe"
	apartName    = "direct pipe, on two cores"
	privateName  = "garra stdio, no gateway running"
	attachedName = "garra stdio, attached"
	httpName     = "garra HTTP, /mcp/NAME"
	allName      = "garra HTTP, /mcp"
	bareName     = "bare net/http handler, answers itself"
	relayName    = "bare net/http handler, child behind it"
	passName     = "bare pipe relay"
)

// A way is one way to the same server.
type way struct {
	name string
	open func(callers int) (*session, error)
	tool string // what precedes the names of tools
}

// ways starts what is needed and returns all ways to one server.
func (b *rig) ways() ([]way, error) {
	servers := map[string]program{"server": b.child()}
	alone, err := b.home("alone", servers)
	if err != nil {
		return nil, err
	}
	served, err := b.home("served", servers)
	if err != nil {
		return nil, err
	}
	g, err := served.serveKept()
	if err != nil {
		return nil, err
	}
	bare, err := b.handler(roleBare)
	if err != nil {
		return nil, err
	}
	relay, err := b.handler(roleRelay, "-http")
	if err != nil {
		return nil, err
	}
	pipe := func(p program) func(int) (*session, error) {
		return func(callers int) (*session, error) { return b.keep(p.openPipe(b.ctx, callers)) }
	}
	http := func(path string) func(int) (*session, error) {
		return func(callers int) (*session, error) { return b.keep(g.open(path, callers)) }
	}
	return []way{
		{directName, pipe(b.child()), ""},
		{privateName, pipe(alone.program("stdio", "--server", "server")), ""},
		{attachedName, pipe(served.program("stdio", "--server", "server")), ""},
		{httpName, http("/mcp/server"), ""},
		{allName, http("/mcp"), "server__"},
		{passName, pipe(program{path: b.self, args: []string{roleRelay}}), ""},
		{relayName, func(callers int) (*session, error) { return b.keep(relay.openHTTP(callers)) }, ""},
		{bareName, func(callers int) (*session, error) { return b.keep(bare.openHTTP(callers)) }, ""},
	}, nil
}

// sequential measures one caller that calls again and again.
func sequential(b *rig, add func(result)) error {
	ways, err := b.ways()
	if err != nil {
		return err
	}
	c := comparison{
		name: "sequential tools/call, latency", unit: "µs", rounds: b.bursts(),
		targets: []target{
			{privateName, directName, atMost(2.3)},
			{attachedName, directName, atMost(3.5)},
			{httpName, directName, atMost(2.5)},
			{allName, directName, atMost(2.5)},
			{passName, directName, shown()},
			{relayName, directName, shown()},
			{bareName, directName, shown()},
			{privateName, apartName, atMost(2.3)},
			{attachedName, apartName, atMost(3.5)},
			{httpName, apartName, atMost(2.5)},
			{allName, apartName, atMost(2.5)},
			{privateName, passName, shown()},
			{httpName, relayName, shown()},
		},
	}
	err = c.apart(b, func(one caller) func() (float64, error) {
		return latency(one, echoCall("echo"), scale(b.options, burst, 5))
	})
	if err != nil {
		return err
	}
	for _, w := range ways {
		s, err := w.open(1)
		if err != nil {
			return err
		}
		call := echoCall(w.tool + "echo")
		if _, err := timesOf(s.one(), call, scale(b.options, 500, 5)); err != nil { // warm
			return err
		}
		c.variants = append(c.variants, variant{w.name, latency(s.one(), call, scale(b.options, burst, 5))})
	}
	return c.report(add)
}

// apart is a direct pipe whose ends are kept on different cores, where they are
// when a machine has nothing else to do: a message wakes the other core. It adds
// nothing where processes can't be kept.
func (c *comparison) apart(b *rig, measure func(caller) func() (float64, error)) error {
	if !canPin() {
		return nil
	}
	s, err := b.keep(b.child().openPipe(b.ctx, 1))
	if err != nil {
		return err
	}
	if err := pinProcess(s.process.cmd.Process.Pid, 1); err != nil {
		return err
	}
	if err := block(s.process.out); err != nil {
		return err
	}
	one := measure(s.one())
	c.variants = append(c.variants, variant{apartName, func() (value float64, err error) {
		err = pinned(0, func() error {
			value, err = one()
			return err
		})
		return value, err
	}})
	return nil
}

// burst is how many calls one measurement of one caller makes. Bursts are short
// and many: for how long the processes stay on the processors where they are
// makes more of a difference than anything else.
const burst = 60

// bursts is how many rounds of bursts there are.
func (b *rig) bursts() int { return b.options.count() * scale(b.options, 5, 1) }

// report runs a comparison and adds what it found.
func (c comparison) report(add func(result)) error {
	r, err := c.run()
	if err == nil {
		add(r)
	}
	return err
}

// parallel is how many callers there are where many call at once.
const parallel = 64

// concurrent measures many callers at once.
func concurrent(b *rig, add func(result)) error {
	ways, err := b.ways()
	if err != nil {
		return err
	}
	c := comparison{
		name: "64 concurrent callers", unit: "calls/s", rounds: b.options.count(),
		targets: []target{
			{httpName, bareName, atLeast(0.5)},
			{httpName, relayName, atLeast(0.5)},
			{httpName, directName, atLeast(0.34)},
			{allName, bareName, atLeast(0.5)},
			{allName, relayName, atLeast(0.5)},
			{allName, directName, atLeast(0.34)},
			{passName, directName, shown()},
			{relayName, directName, shown()},
			{privateName, directName, shown()},
			{attachedName, directName, shown()},
			{bareName, directName, shown()},
		},
	}
	for _, w := range ways {
		s, err := w.open(parallel)
		if err != nil {
			return err
		}
		measure := throughput(s.callers, []request{echoCall(w.tool + "echo")}, b.span())
		if _, err := measure(); err != nil { // warm
			return err
		}
		c.variants = append(c.variants, variant{w.name, measure})
	}
	return c.report(add)
}

// span is how long one measurement of many callers takes.
func (b *rig) span() time.Duration {
	return scale(b.options, 500*time.Millisecond, 50*time.Millisecond)
}

// large measures large results.
func large(b *rig, add func(result)) error {
	ways, err := b.ways()
	if err != nil {
		return err
	}
	size := scale(b.options, 8<<20, 1<<20)
	c := comparison{
		name: fmt.Sprintf("result of %d MiB", size>>20), unit: "ms", rounds: b.options.count(),
		targets: []target{
			{privateName, directName, atMost(1.1)},
			{attachedName, directName, atMost(1.1)},
			{httpName, directName, atMost(1.1)},
			{allName, directName, atMost(1.1)},
			{privateName, apartName, atMost(1.1)},
			{attachedName, apartName, atMost(1.1)},
			{httpName, apartName, atMost(1.1)},
			{allName, apartName, atMost(1.1)},
			{passName, directName, shown()},
			{relayName, directName, shown()},
			{bareName, directName, shown()},
		},
	}
	decoded := c
	decoded.name, decoded.variants = c.name+", and the client decodes it (encoding/json)", nil
	for _, w := range ways {
		s, err := w.open(1)
		if err != nil {
			return err
		}
		call := bigCall(w.tool+"big", size)
		c.variants = append(c.variants, variant{w.name, once(s.one(), call)})
		decoded.variants = append(decoded.variants, variant{w.name, onceDecoded(s.one(), call)})
	}
	err = c.apart(b, func(one caller) func() (float64, error) { return once(one, bigCall("big", size)) })
	if err != nil {
		return err
	}
	if err := c.report(add); err != nil {
		return err
	}
	if err := decoded.report(add); err != nil {
		return err
	}
	return b.peaks(size, add)
}

// onceDecoded is once for a client that makes something of the answer.
func onceDecoded(c caller, r request) func() (float64, error) {
	return func() (float64, error) {
		began := time.Now()
		answer, err := r.ask(c)
		if err != nil {
			return 0, err
		}
		var message struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal(answer, &message); err != nil {
			return 0, fmt.Errorf("decoding: %w", err)
		}
		return float64(time.Since(began).Microseconds()) / 1000, nil
	}
}
