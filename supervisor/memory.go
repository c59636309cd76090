// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

const megabyte = 1 << 20

// limitsOf are the limits that an entry sets.
func limitsOf(e *mcpconfig.Server, noCgroup bool) sandbox.Limits {
	return sandbox.Limits{
		Memory:       int64(e.MemoryLimitMB) * megabyte,
		AddressSpace: int64(e.AddressSpaceLimitMB) * megabyte,
		CPU:          e.CPULimit,
		Processes:    e.MaxProcesses,
		OpenFiles:    e.MaxOpenFiles,
		NoCgroup:     noCgroup,
	}
}

// showLimits tells people what became of the limits.
func showLimits(run *lifecycle.Run, e sandbox.Enforcement) {
	limits := source.Limits{Unenforced: e.Unenforced}
	for _, layer := range e.Memory {
		limits.Memory = append(limits.Memory, string(layer))
	}
	for _, what := range e.Unenforced {
		run.Warn(fmt.Sprintf("server %q: %s", run.Entry.Name, what))
	}
	run.Show(func(s *source.Status) { s.Limits = limits })
}

// ranOut reports whether the server ended for want of memory: it was ended since it
// used more than it may, or it ended by itself after an allocation had failed. The
// kernel doesn't tell of that, so what does is how much it had, or what it said.
func (a *attendance) ranOut() bool {
	limit := int64(a.run.Entry.MemoryLimitMB) * megabyte
	exit := a.proc.Exit()
	switch {
	case limit == 0, exit.Lost:
		return false
	case exit.Over:
		return true
	case exit.Code <= 0 && !diesOfItself(exit.Signal):
		return false
	}
	return exit.Near || exit.Peak >= limit*9/10 || exit.Peak >= limit/4 && saysMemory(a.words())
}

// diesOfItself reports whether a signal is one by which runtimes end themselves when
// they get no memory.
func diesOfItself(sig syscall.Signal) bool {
	return sig == syscall.SIGABRT || sig == syscall.SIGTRAP || sig == syscall.SIGSEGV || sig == syscall.SIGILL
}

// saysMemory reports whether words are those of a runtime that got no memory:
// V8's, Python's, the JVM's, Go's, C++'s, and the C library's. The stack of a thread is
// memory too.
func saysMemory(words string) bool {
	words = strings.ToLower(words)
	for _, phrase := range []string{
		"heap out of memory", "array buffer allocation failed", "memoryerror", "outofmemoryerror",
		"out of memory", "bad_alloc", "cannot allocate memory", "failed to reserve virtual memory",
		"pthread_create failed",
	} {
		if strings.Contains(words, phrase) {
			return true
		}
	}
	return false
}

// explainMemory completes the failure of a server that ran out of memory.
func (a *attendance) explainMemory(f *source.Failure, ended string) {
	limit := a.run.Entry.MemoryLimitMB
	exit := a.proc.Exit()
	peak := megabytes(exit.Peak)
	f.Reason = source.ReasonMemory
	f.Message = fmt.Sprintf("memory: the server %s after %s, with a peak of %d MB; its memoryLimitMb is %d",
		ended, age(a.started), peak, limit)
	f.Fix = fmt.Sprintf("if it needs that much, set memoryLimitMb to %d; %s", enough(max(peak, limit)), f.Fix)
}

// megabytes is a number of bytes in megabytes, rounded up.
func megabytes(bytes int64) int { return int((bytes + megabyte - 1) / megabyte) }

// enough suggests a limit for a server that used so many megabytes: half as much
// again, in steps of 64.
func enough(used int) int {
	const step = 64
	return (used*3/2 + step - 1) / step * step
}
