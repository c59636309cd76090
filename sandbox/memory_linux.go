// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A sampler watches what a tree uses. It looks the more often the less is left
// until the limit: as often as a tree could get there that allocates at full speed
// until then, within bounds.
type sampler struct {
	limit int64
	group *group
	timer *time.Timer
	root  int   // of the tree
	last  int64 // sum at the last look, never less than the truth
	at    time.Time
	peak  int64 // of what was measured, and of what the kernel told of processes that ended
	data  int64 // RLIMIT_DATA of each process
	near  bool  // a process had nearly as much as that
}

const (
	fastGrowth    = 512 << 20 // bytes a second that a tree is trusted not to exceed unseen
	soonestSample = 20 * time.Millisecond
	latestSample  = time.Second
)

// newSampler returns nil when there is nothing to watch.
func newSampler(l *Limits, g *group, root int) *sampler {
	if l.Memory == 0 {
		return nil
	}
	s := &sampler{limit: l.Memory, group: g, root: root, at: time.Now()}
	if s.data = l.Memory; g.memoryLayer() != "" {
		s.data = l.dataLimit([]Layer{g.memoryLayer()})
	}
	s.timer = time.NewTimer(s.pause(fastGrowth))
	return s
}

// due is when to look.
func (s *sampler) due() <-chan time.Time {
	if s == nil {
		return nil
	}
	return s.timer.C
}

// over looks, and reports whether the tree must be ended: it uses more than it may,
// or the kernel has killed a part of it for that.
func (s *sampler) over() bool {
	pids := descendants(s.root)
	used := sum(pids, s.glance)
	if used > s.limit { // what processes share was counted for each
		used = sum(pids, proportional)
		s.note(used)
	}
	growth := float64(used-s.last) / max(time.Since(s.at).Seconds(), 0.001)
	s.last, s.at = used, time.Now()
	s.timer.Reset(s.pause(max(2*growth, fastGrowth)))
	return used > s.limit || s.killed()
}

// glance returns what a process uses, with all that it shares; it is quick. On the way it
// looks whether the process is about to get no more.
func (s *sampler) glance(pid int) int64 {
	text := statusOf(pid)
	if sumOfFields(text, "VmData:") >= s.data-s.data/8 {
		s.near = true
	}
	return resident(text)
}

// wasNear reports whether an allocation may have failed that RLIMIT_DATA forbade.
func (s *sampler) wasNear() bool { return s != nil && s.near }

// pause is the time that a tree which grows so fast needs to the limit.
func (s *sampler) pause(growth float64) time.Duration {
	left := float64(s.limit-s.last) / growth
	return min(max(time.Duration(left*float64(time.Second)), soonestSample), latestSample)
}

// note takes what was used at some moment, in bytes.
func (s *sampler) note(used int64) {
	if s != nil {
		s.peak = max(s.peak, used)
	}
}

// seen is the most that was noted.
func (s *sampler) seen() int64 {
	if s == nil {
		return 0
	}
	return s.peak
}

// killed reports whether the kernel killed a part of the tree.
func (s *sampler) killed() bool {
	if s == nil || !s.group.killed() {
		return false
	}
	s.note(s.limit)
	return true
}

// used returns what the tree uses at this moment.
func (p *Process) used() (bytes int64, ok bool) {
	return sum(descendants(p.root), proportional), true
}

func sum(pids []int, of func(pid int) int64) (total int64) {
	for _, pid := range pids {
		total += of(pid)
	}
	return total
}

// statusOf returns /proc/PID/status, nothing of a process that is gone.
func statusOf(pid int) []byte {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return text
}

// resident returns what a process uses by its status, with all that it shares.
func resident(status []byte) int64 { return sumOfFields(status, "VmRSS:", "VmSwap:") }

// proportional returns what a process uses, with its part of what it shares
// (proc_pid_smaps(5), Pss). Of a process that this one may not look into it is all
// that it shares.
func proportional(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)) // since Linux 4.14
	if err != nil {
		return resident(statusOf(pid))
	}
	return sumOfFields(text, "Pss:", "SwapPss:")
}

// sumOfFields adds up lines of "NAME: NUMBER kB".
func sumOfFields(text []byte, names ...string) (total int64) {
	for line := range bytes.Lines(text) {
		for _, name := range names {
			rest, ok := bytes.CutPrefix(line, []byte(name))
			if !ok {
				continue
			}
			kilobytes, _ := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte(" kB"))), 10, 64)
			total += kilobytes << 10
		}
	}
	return total
}
