// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of times in /proc (proc_pid_stat(5)); the kernel shows hundredths
// of a second to user space whatever it counts in itself.
const clockTick = time.Second / 100

// look implements Look: over the processes of the server's own group, which wrappers such
// as npx share with what they run. What made a group of its own, such as a suspended job
// of a shell that the server runs, is the server's business.
func (p *Process) look() (v Vitals, ok bool) {
	group, _ := split(descendants(p.launcher.Pid), p.pid)
	for _, pid := range group {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // gone
		}
		state, used := parseVitals(text)
		v.Stopped = v.Stopped || state == 'T'
		v.CPU += used
	}
	return v, len(group) > 0
}

// parseVitals returns the state of a process, and the processor time that it used, from
// /proc/PID/stat (proc_pid_stat(5): fields 3, 14 and 15).
func parseVitals(text []byte) (state byte, used time.Duration) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system || len(fields[0]) != 1 {
		return 0, 0
	}
	for _, i := range []int{user, system} {
		ticks, _ := strconv.ParseInt(string(fields[i]), 10, 64) // the kernel writes numbers
		used += time.Duration(ticks) * clockTick
	}
	return fields[0][0], used
}
