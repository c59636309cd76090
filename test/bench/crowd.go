// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// What there is behind garra where there are many servers.
const (
	serverCount = 20
	toolsEach   = 15
)

func serverName(i int) string { return fmt.Sprintf("s%02d", i) }

// crowd is many servers.
func (b *rig) crowd(args ...string) map[string]program {
	servers := make(map[string]program)
	for i := range serverCount {
		servers[serverName(i)] = b.child(append([]string{"-tools", fmt.Sprint(toolsEach)}, args...)...)
	}
	return servers
}

// many measures the list of many servers' tools, and what garra takes to keep
// them.
func many(b *rig, add func(result)) error {
	h, err := b.home("many", b.crowd())
	if err != nil {
		return err
	}
	g, err := h.serveKept()
	if err != nil {
		return err
	}
	list, err := g.tools()
	if err != nil {
		return err
	}
	if n := countTools(list); n != serverCount*toolsEach {
		return fmt.Errorf("%d tools are listed, not %d", n, serverCount*toolsEach)
	}
	if err := b.residents(g, add); err != nil {
		return err
	}
	file := filepath.Join(b.dir, "list.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	bare, err := b.handler(roleBare, "-list", file)
	if err != nil {
		return err
	}
	through, err := b.keep(g.open("/mcp", 1))
	if err != nil {
		return err
	}
	direct, err := b.keep(bare.openHTTP(1))
	if err != nil {
		return err
	}
	ask, n := request{"tools/list", "{}"}, scale(b.options, 100, 5)
	return comparison{
		name: fmt.Sprintf("tools/list of 20 servers' 300 tools, %d bytes", len(list)), unit: "µs",
		rounds: b.options.count(),
		variants: []variant{
			{allName, latency(through.one(), ask, n)}, {bareName, latency(direct.one(), ask, n)},
		},
		targets: []target{{allName, bareName, atMost(1.2)}},
	}.report(add)
}

// residents adds what an idle garra takes.
func (b *rig) residents(g *gateway, add func(result)) error {
	pid := g.cmd.Process.Pid
	r := result{Name: "idle garra with 20 servers of 15 tools"}
	fresh, err := memory(pid, "VmRSS")
	if err != nil {
		return err
	}
	wait := scale(b.options, 20*time.Second, 0)
	time.Sleep(wait)
	idle, err := memory(pid, "VmRSS")
	if err != nil {
		return err
	}
	count, bytes, err := helpers(b.garra, pid)
	if err != nil {
		return err
	}
	r.Values = []value{
		{Name: "resident at once", Value: float64(fresh) / mebi, Unit: "MiB"},
		{
			Name: "resident after " + wait.String(), Value: float64(idle) / mebi, Unit: "MiB",
			verdict: atMost(25).judge(float64(idle) / mebi),
		},
		{Name: fmt.Sprintf("its %d helper processes (Pss)", count), Value: float64(bytes) / mebi, Unit: "MiB"},
	}
	add(r)
	return nil
}

// ready measures how long it takes until many servers can be used.
func ready(b *rig, add func(result)) error {
	none, err := b.home("ready-none", nil)
	if err != nil {
		return err
	}
	for _, delay := range []time.Duration{0, 250 * time.Millisecond} {
		args := []string{"-delay", delay.String()}
		h, err := b.home("ready-"+delay.String(), b.crowd(args...))
		if err != nil {
			return err
		}
		const hand, through = "started by hand, at once", "garra serve, from its start"
		err = comparison{
			name: fmt.Sprintf("20 servers ready, which take %s to start", delay), unit: "ms",
			rounds: scale(b.options, 11, 1),
			variants: []variant{
				{hand, func() (float64, error) { return b.byHand(args) }},
				{through, func() (float64, error) { return h.untilReady(serverCount * toolsEach) }},
				{"garra serve without servers", func() (float64, error) { return none.untilReady(0) }},
			},
			targets: []target{{through, hand, atMost(1.3)}},
		}.report(add)
		if err != nil {
			return err
		}
	}
	return nil
}

// byHand starts all servers at the same time, and returns how long it takes, in
// ms, until each has listed its tools.
func (b *rig) byHand(args []string) (float64, error) {
	opened, errs := make([]*session, serverCount), make([]error, serverCount)
	began := time.Now()
	var all sync.WaitGroup
	for i := range serverCount {
		all.Go(func() { // ends with the list; Wait below
			p := b.crowd(args...)[serverName(i)]
			if opened[i], errs[i] = p.openPipe(b.ctx, 1); errs[i] == nil {
				_, errs[i] = opened[i].one().call("tools/list", "{}")
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	for _, s := range opened {
		if s != nil {
			s.close()
		}
	}
	return float64(took.Microseconds()) / 1000, firstOf(errs)
}

// untilReady starts garra and returns how long it takes, in ms, until it lists
// so many tools.
func (h *home) untilReady(tools int) (float64, error) {
	began := time.Now()
	g, err := h.serve()
	if err != nil {
		return 0, err
	}
	defer g.terminate()
	for time.Since(began) < patience {
		list, err := g.tools()
		if err != nil {
			return 0, err
		}
		if countTools(list) == tools {
			return float64(time.Since(began).Microseconds()) / 1000, nil
		}
	}
	return 0, g.explain(fmt.Errorf("not all of %d tools are listed", tools))
}

// sessions measures many client sessions against one, with the same number of
// callers.
func sessions(b *rig, add func(result)) error {
	h, err := b.home("sessions", b.crowd())
	if err != nil {
		return err
	}
	g, err := h.serveKept()
	if err != nil {
		return err
	}
	one, err := b.keep(g.open("/mcp", parallel))
	if err != nil {
		return err
	}
	var each []caller
	for range parallel {
		s, err := b.keep(g.open("/mcp", 1))
		if err != nil {
			return err
		}
		each = append(each, s.one())
	}
	var requests []request
	for i := range serverCount {
		requests = append(requests, echoCall(serverName(i)+"__echo"))
	}
	const single, several = "64 callers in one session", "64 sessions of one caller"
	return comparison{
		name: "64 sessions on 20 servers", unit: "calls/s", rounds: b.options.count(),
		variants: []variant{
			{single, throughput(one.callers, requests, b.span())}, {several, throughput(each, requests, b.span())},
		},
		targets: []target{{several, single, atLeast(0.8)}},
	}.report(add)
}
