// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"slices"
)

// Limits are what a server's tree may use. They are set before the server is
// executed, so nothing of the tree is ever without them. Zero means no limit.
type Limits struct {
	Memory       int64   // bytes that the whole tree may use
	AddressSpace int64   // bytes of address space of each process, RLIMIT_AS
	CPU          float64 // processor cores for the whole tree
	Processes    int     // processes and threads of the whole tree
	OpenFiles    int     // descriptors of each process
	// NoCgroup leaves control groups out, as where none can be had.
	NoCgroup bool
}

// A Layer is something that holds a tree to its memory limit.
type Layer string

// The layers, the strictest first.
const (
	LayerCgroup2    Layer = "cgroup2"     // memory.max: the kernel kills the tree
	LayerCgroup1    Layer = "cgroup1"     // memory.limit_in_bytes: the kernel kills a process, garra the others
	LayerRlimitData Layer = "rlimit_data" // RLIMIT_DATA: an allocation fails, in each process by itself
	LayerSampler    Layer = "sampler"     // the launcher looks what the tree uses, and kills it
)

// An Enforcement says what became of Limits.
type Enforcement struct {
	Memory []Layer // what is in force of Limits.Memory; empty when nothing is
	// Unenforced says in words, a sentence each, what isn't in force as it was asked for.
	Unenforced []string
}

// How the limits are called in Enforcement.Unenforced.
const (
	limitOfMemory    = "the limit of memory"
	limitOfAddresses = "the limit of address space"
	limitOfCPU       = "the limit of processor time"
	limitOfProcesses = "the limit of processes"
	limitOfFiles     = "the limit of open files"
)

// What goes wrong with limits before anything was started.
var errLimits = errors.New("a limit is negative")

func (l *Limits) check() error {
	if l.Memory < 0 || l.AddressSpace < 0 || l.CPU < 0 || l.Processes < 0 || l.OpenFiles < 0 {
		return errLimits
	}
	return nil
}

// any reports whether there is a limit.
func (l *Limits) any() bool {
	return l.Memory > 0 || l.AddressSpace > 0 || l.CPU > 0 || l.Processes > 0 || l.OpenFiles > 0
}

// dataLimit is the RLIMIT_DATA of each process. It counts what is allocated, of
// which a little is never used; where a cgroup counts what is used, that decides.
func (l *Limits) dataLimit(layers []Layer) int64 {
	if slices.Contains(layers, LayerCgroup1) || slices.Contains(layers, LayerCgroup2) {
		return l.Memory + l.Memory/4
	}
	return l.Memory
}
