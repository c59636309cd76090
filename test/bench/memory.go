// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const mebi = 1 << 20

// peaks measures how much memory garra needs for large results, in processes
// that were idle before.
func (b *rig) peaks(size int, add func(result)) error {
	r := result{Name: fmt.Sprintf("garra's memory for results of %d MiB", size>>20)}
	servers := map[string]program{"server": b.child()}
	alone, err := b.home("peak-alone", servers)
	if err != nil {
		return err
	}
	s, err := b.keep(alone.program("stdio", "--server", "server").openPipe(b.ctx, 1))
	if err != nil {
		return err
	}
	if err := r.peaks("garra stdio, no gateway running", s.process, s.one(), size); err != nil {
		return err
	}
	served, err := b.home("peak-served", servers)
	if err != nil {
		return err
	}
	g, err := served.serveKept()
	if err != nil {
		return err
	}
	s, err = b.keep(g.open("/mcp/server", 1))
	if err != nil {
		return err
	}
	if err := r.peaks("garra HTTP", g.process, s.one(), size); err != nil {
		return err
	}
	if s, err = b.keep(b.child().openPipe(b.ctx, 1)); err != nil {
		return err
	}
	times, err := timesOf(s.one(), bigCall("big", 8*size), 1)
	if err != nil {
		return err
	}
	r.pass(directName, times[0], 8*size)
	add(r)
	return nil
}

// peaks adds how much the process grows with one large result, with several in
// turn, and with one eight times as large.
func (r *result) peaks(name string, p *process, c caller, size int) error {
	pid := p.cmd.Process.Pid
	if _, err := timesOf(c, echoCall("echo"), 20); err != nil {
		return p.explain(err)
	}
	idle, err := memory(pid, "VmRSS")
	if err != nil {
		return err
	}
	r.Values = append(r.Values, value{Name: name + ": resident before", Value: float64(idle) / mebi, Unit: "MiB"})
	for _, step := range []struct {
		name         string
		calls, bytes int
		bound        bound
	}{
		{"grows with the first", 1, size, atMost(3)},
		{"grows with ten in turn", 10, size, atMost(3)},
		{fmt.Sprintf("grows with one of %d MiB", 8*size>>20), 1, 8 * size, shown()},
	} {
		if err := resetPeak(pid); err != nil {
			return err
		}
		times, err := timesOf(c, bigCall("big", step.bytes), step.calls)
		if err != nil {
			return p.explain(err)
		}
		peak, err := memory(pid, "VmHWM")
		if err != nil {
			return err
		}
		grown := float64(peak-idle) / float64(step.bytes)
		r.Values = append(r.Values,
			value{name + ": " + step.name, grown, "× the result", step.bound.judge(grown)})
		if step.calls == 1 && step.bytes != size {
			r.pass(name, times[0], step.bytes)
		}
	}
	return nil
}

// pass adds how long a result took, in µs, the first of its length: all buffers on
// its way grow.
func (r *result) pass(name string, time float64, bytes int) {
	r.Values = append(r.Values, value{
		Name: fmt.Sprintf("%s: the first of %d MiB passes in", name, bytes>>20), Value: time / 1000, Unit: "ms",
	})
}

// helpers returns how many processes of garra there are below a process, and
// how much memory they have to themselves and share, as smaps_rollup's Pss
// counts it (proc(5)).
func helpers(garra string, pid int) (count, bytes int, err error) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, 0, fmt.Errorf("reading processes: %w", err)
	}
	for _, folder := range entries {
		if parentOf(folder) != pid {
			continue
		}
		below, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if path, err := os.Readlink(folder + "/exe"); err != nil || path != garra {
			continue
		}
		text, err := os.ReadFile(folder + "/smaps_rollup")
		if err != nil {
			return 0, 0, fmt.Errorf("reading memory: %w", err)
		}
		own, err := kilobytes(text, "Pss")
		if err != nil {
			return 0, 0, err
		}
		further, more, err := helpers(garra, below)
		if err != nil {
			return 0, 0, err
		}
		count, bytes = count+1+further, bytes+own+more
	}
	return count, bytes, nil
}

// parentOf returns the parent of a process; 0 when it is gone.
func parentOf(folder string) int {
	text, err := os.ReadFile(folder + "/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte("PPid:")); found {
			return number(bytes.TrimSpace(value))
		}
	}
	return 0
}
