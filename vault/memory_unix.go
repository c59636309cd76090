// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vault

import "golang.org/x/sys/unix"

// raiseLimit raises the soft limit on locked memory to the hard one, which needs
// no privilege. Where that fails, what can be locked decides.
func raiseLimit() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil && limit.Cur < limit.Max {
		limit.Cur = limit.Max
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)
	}
}
