// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package sandbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// A group is empty here: there are no control groups.
type group struct{}

func newGroup(*Limits) (*group, *failedReport) { return nil, nil }

func (*group) put(int) *failedReport { return nil }

func (*group) remove() {}

// sweepGroups does nothing on this system.
func sweepGroups() {}

// rlimits are the resource limits of the server, of which those that concern the
// memory of the process that sets them come last.
func rlimits(l *Limits, _ *group, _ []Layer) (list []rlimit) {
	if l.OpenFiles > 0 {
		list = append(list, rlimit{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)})
	}
	if l.AddressSpace > 0 {
		list = append(list, rlimit{"RLIMIT_AS", unix.RLIMIT_AS, uint64(l.AddressSpace)})
	}
	return list
}

// enforcement says what is in force of the limits.
func enforcement(l *Limits, _ *group) Enforcement {
	return l.unenforced(limitOfFiles, limitOfAddresses)
}

// A sampler does nothing here: what a tree uses can't be seen.
type sampler struct{ peak int64 }

func newSampler(*Limits, *group, int) *sampler { return nil }

func (*sampler) due() <-chan time.Time { return nil }

func (*sampler) over() bool { return false }

func (*sampler) killed() bool { return false }

func (*sampler) wasNear() bool { return false }

func (*sampler) note(int64) {}

func (*sampler) seen() int64 { return 0 }

// used: nobody can tell what the tree uses.
func (p *Process) used() (int64, bool) { return 0, false }
