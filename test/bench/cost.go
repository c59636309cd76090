// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// cost measures the processor time that garra's process takes for a call, which
// depends on what else the machine does far less than latency.
func cost(b *rig, add func(result)) error {
	servers := map[string]program{"server": b.child()}
	alone, err := b.home("cost-alone", servers)
	if err != nil {
		return err
	}
	served, err := b.home("cost-served", servers)
	if err != nil {
		return err
	}
	g, err := served.serveKept()
	if err != nil {
		return err
	}
	r := result{Name: "processor time of garra's process for a call"}
	for _, callers := range []int{1, parallel} {
		s, err := b.keep(alone.program("stdio", "--server", "server").openPipe(b.ctx, callers))
		if err != nil {
			return err
		}
		if err := r.cost(privateName, s.process, s.callers, b.options); err != nil {
			return err
		}
		if s, err = b.keep(g.open("/mcp/server", callers)); err != nil {
			return err
		}
		if err := r.cost(httpName, g.process, s.callers, b.options); err != nil {
			return err
		}
	}
	add(r)
	return nil
}

// cost adds what calls of some callers take.
func (r *result) cost(name string, p *process, callers []caller, o options) error {
	span := scale(o, 3*time.Second, 50*time.Millisecond)
	measure := throughput(callers, []request{echoCall("echo")}, span)
	if _, err := measure(); err != nil { // warm
		return p.explain(err)
	}
	before, err := processorTime(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	rate, err := measure()
	if err != nil {
		return p.explain(err)
	}
	calls := rate * time.Since(began).Seconds()
	after, err := processorTime(p.cmd.Process.Pid)
	if err != nil {
		return err
	}
	r.Values = append(r.Values, value{
		Name:  fmt.Sprintf("%s, %d at once", name, len(callers)),
		Value: float64((after - before).Microseconds()) / calls, Unit: "µs",
	})
	return nil
}

// processorTime is what a process has taken, in user mode and in the kernel
// (proc(5), stat).
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading processor time: %w", err)
	}
	const tick = 10 * time.Millisecond // a clock tick, on every architecture that Go has for Linux
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading processor time: %q", text)
	}
	return time.Duration(number(fields[11])+number(fields[12])) * tick, nil
}
