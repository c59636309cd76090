// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A gate is any gateway, as a client sees it.
type gate struct {
	name string
	open func(callers int) (*session, error)
	echo string // the names of tools there; empty when there is none
	big  string
}

// overURL is a gateway at a URL.
func overURL(name, address string, sse bool, headers []string) (*gate, error) {
	e, err := newEndpoint(address, headers)
	if err != nil {
		return nil, err
	}
	g := &gate{name: name, open: e.openHTTP}
	if sse {
		g.open = e.openSSE
	}
	return g, nil
}

// findTools looks up what the tools are called there.
func (g *gate) findTools() error {
	s, err := g.open(1)
	if err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	defer s.close()
	answer, err := s.one().call("tools/list", "{}")
	if err != nil {
		return fmt.Errorf("%s: %w", g.name, err)
	}
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return fmt.Errorf("%s: reading its tools: %w", g.name, err)
	}
	for _, tool := range list.Result.Tools {
		if g.echo == "" && strings.HasSuffix(tool.Name, "echo") {
			g.echo = tool.Name
		}
		if g.big == "" && strings.HasSuffix(tool.Name, "big") {
			g.big = tool.Name
		}
	}
	if g.echo == "" {
		return fmt.Errorf("%s: none of its %d tools is named echo; name one", g.name, len(list.Result.Tools))
	}
	return nil
}

// foreign measures the gateway that options name, beside a direct pipe.
func foreign(b *rig, add func(result)) error {
	name := "gateway at " + b.options.url
	g, err := overURL(name, b.options.url, b.options.sse, b.options.headers)
	if err != nil {
		return err
	}
	if g.echo, g.big = b.options.tool, b.options.big; g.echo == "" {
		if err := g.findTools(); err != nil {
			return err
		}
	}
	return b.compareGates([]*gate{g}, nil, add)
}

// directGate is a server without a gateway.
func (b *rig) directGate() *gate {
	open := func(callers int) (*session, error) { return b.child().openPipe(b.ctx, callers) }
	return &gate{directName, open, "echo", "big"}
}

// A load is what gateways are measured with.
type load struct {
	name, unit string
	callers    int
	measure    func(*gate, *session) func() (float64, error)
}

// The names of loads.
const (
	sequentialLoad = "sequential tools/call, latency"
	concurrentLoad = "64 concurrent callers"
)

func (b *rig) loads() []load {
	size := scale(b.options, 8<<20, 1<<20)
	return []load{
		{sequentialLoad, "µs", 1, func(g *gate, s *session) func() (float64, error) {
			return latency(s.one(), echoCall(g.echo), scale(b.options, burst, 5))
		}},
		{concurrentLoad, "calls/s", parallel, func(g *gate, s *session) func() (float64, error) {
			return throughput(s.callers, []request{echoCall(g.echo)}, b.span())
		}},
		{fmt.Sprintf("result of %d MiB", size>>20), "ms", 1, func(g *gate, s *session) func() (float64, error) {
			return once(s.one(), bigCall(g.big, size))
		}},
	}
}

// compareGates measures gateways with the same load, beside a direct pipe.
// targets are by load.
func (b *rig) compareGates(gates []*gate, targets map[string][]target, add func(result)) error {
	for _, l := range b.loads() {
		skip := func(gate string, err error) {
			add(result{Name: l.name + ": " + gate, Skipped: err.Error()})
		}
		c := comparison{
			name: l.name, unit: l.unit, rounds: b.options.count(), targets: targets[l.name], drop: skip,
		}
		mark := b.mark()
		for _, g := range append([]*gate{b.directGate()}, gates...) {
			measure, err := b.try(g, l)
			if err != nil {
				skip(g.name, err)
				continue
			}
			c.variants = append(c.variants, variant{g.name, measure})
		}
		err := c.withDirect().report(add)
		b.end(mark)
		if err != nil {
			return err
		}
	}
	return nil
}

// try opens a session and measures once, since there are gateways that can't.
func (b *rig) try(g *gate, l load) (func() (float64, error), error) {
	s, err := g.open(l.callers)
	if err != nil {
		return nil, err
	}
	m := l.measure(g, s)
	if _, err := m(); err != nil {
		s.close()
		return nil, err
	}
	b.atEnd(s.close)
	return m, nil
}

// withDirect adds the ratio of each variant to the direct pipe.
func (c comparison) withDirect() comparison {
	c.targets = slices.Clone(c.targets)
	for _, v := range c.variants {
		if v.name != directName {
			c.targets = append(c.targets, target{v.name, directName, shown()})
		}
	}
	return c
}
