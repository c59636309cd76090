// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// rlimits are the resource limits of the server, of which those that concern the
// memory of the process that sets them come last.
func rlimits(l *Limits, g *group, layers []Layer) (list []rlimit) {
	if l.OpenFiles > 0 {
		list = append(list, rlimit{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)})
	}
	if l.Processes > 0 && !g.has(pidsController) && os.Geteuid() != 0 {
		list = append(list, rlimit{"RLIMIT_NPROC", unix.RLIMIT_NPROC, uint64(l.Processes)})
	}
	if l.Memory > 0 {
		list = append(list, rlimit{"RLIMIT_DATA", unix.RLIMIT_DATA, uint64(l.dataLimit(layers))})
	}
	if l.AddressSpace > 0 {
		list = append(list, rlimit{"RLIMIT_AS", unix.RLIMIT_AS, uint64(l.AddressSpace)})
	}
	return list
}

const noGroup = " is not enforced: it needs a control group, and none can be made"

// enforcement says what is in force of the limits with that group.
func enforcement(l *Limits, g *group) (e Enforcement) {
	if l.Memory > 0 {
		if layer := g.memoryLayer(); layer != "" {
			e.Memory = append(e.Memory, layer)
		}
		e.Memory = append(e.Memory, LayerRlimitData, LayerSampler)
	}
	if l.CPU > 0 && !g.has(cpuController) {
		e.Unenforced = append(e.Unenforced, limitOfCPU+noGroup)
	}
	if l.Processes > 0 && !g.has(pidsController) {
		text := limitOfProcesses + " counts all that the user runs, not the server alone (RLIMIT_NPROC): " +
			"no control group can be made"
		if os.Geteuid() == 0 {
			text = limitOfProcesses + noGroup
		}
		e.Unenforced = append(e.Unenforced, text)
	}
	return e
}
