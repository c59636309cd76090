// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	settle  = 300 * time.Millisecond // until what was stalled has filled all buffers
	stuck   = "stuck"                // the server that stalls
	others  = 8                      // callers that are watched
	another = "s00"                  // the server that is called by them
)

// stalled measures what a client that reads nothing, and a server that does
// nothing, cost the others.
func stalled(b *rig, add func(result)) error {
	h, err := b.home("stalled", map[string]program{another: b.child(), stuck: b.child()})
	if err != nil {
		return err
	}
	g, err := h.serveKept()
	if err != nil {
		return err
	}
	watched, err := b.keep(g.open("/mcp", others))
	if err != nil {
		return err
	}
	span := scale(b.options, time.Second, 100*time.Millisecond)
	measure := slowest(watched.callers, []request{echoCall(another + "__echo")}, span)
	const without, client, server = "without", "with a client that reads nothing", "with a server that does nothing"
	return comparison{
		name: "99th percentile of 8 others' calls", unit: "µs", rounds: b.options.count(),
		variants: []variant{
			{without, func() (float64, error) {
				time.Sleep(settle)
				return measure()
			}},
			{client, func() (float64, error) { return g.besideClient(measure) }},
			{server, func() (float64, error) { return g.besideServer(span, measure) }},
		},
		targets: []target{{client, without, atMost(1.2)}, {server, without, atMost(1.2)}},
	}.report(add)
}

// besideClient measures beside clients that ask for large results and read
// nothing of them.
func (g *gateway) besideClient(measure func() (float64, error)) (float64, error) {
	s, err := g.open("/mcp", 4)
	if err != nil {
		return 0, err
	}
	defer s.close()
	for _, c := range s.callers {
		call := bigCall(another+"__big", 4<<20)
		if err := c.(*httpCaller).send(appendRequest(nil, 1000, call.method, call.params)); err != nil {
			return 0, err
		}
	}
	time.Sleep(settle)
	return measure()
}

// besideServer measures beside a server that does nothing while large requests
// to it wait.
func (g *gateway) besideServer(span time.Duration, measure func() (float64, error)) (float64, error) {
	s, err := g.open("/mcp", 16)
	if err != nil {
		return 0, err
	}
	defer s.close()
	errs := make([]error, len(s.callers))
	var all sync.WaitGroup
	for i, c := range s.callers {
		call := request{"tools/call", fmt.Sprintf(`{"name":"%s__echo","arguments":{"text":"%s"}}`,
			stuck, strings.Repeat("x", 100<<10))}
		if i == 0 {
			call = sleepCall(stuck+"__sleep", 2*settle+span)
		}
		all.Go(func() { // ends when the server wakes; Wait below
			_, errs[i] = call.ask(c)
		})
		if i == 0 {
			time.Sleep(settle / 10) // the others come when it sleeps
		}
	}
	time.Sleep(settle)
	p99, err := measure()
	all.Wait()
	if err == nil {
		err = firstOf(errs)
	}
	return p99, err
}
