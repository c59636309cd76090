// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

import (
	"runtime"
	"slices"
)

// unenforced says which limits this system doesn't enforce, but for those that are
// among the known.
func (l *Limits) unenforced(known ...string) (e Enforcement) {
	for _, limit := range []struct {
		what   string
		wanted bool
	}{
		{limitOfMemory, l.Memory > 0},
		{limitOfAddresses, l.AddressSpace > 0},
		{limitOfCPU, l.CPU > 0},
		{limitOfProcesses, l.Processes > 0},
		{limitOfFiles, l.OpenFiles > 0},
	} {
		if limit.wanted && !slices.Contains(known, limit.what) {
			e.Unenforced = append(e.Unenforced, limit.what+" is not enforced on "+runtime.GOOS)
		}
	}
	return e
}
