// SPDX-License-Identifier: Apache-2.0

package nodump

import "golang.org/x/sys/unix"

// set clears the dumpable attribute (prctl(2), PR_SET_DUMPABLE), by which ptrace(2) and
// /proc go, and the limit on core files.
func set() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
