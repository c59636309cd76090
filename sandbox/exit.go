// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"syscall"
	"time"
)

// An Exit is how a server's main process ended and what it used. The resources
// include those of its children that it waited for.
type Exit struct {
	Code   int            // exit code; -1 when a signal ended the process or nobody knows
	Signal syscall.Signal // the signal that ended the process, or 0
	User   time.Duration  // CPU time in user mode
	System time.Duration  // CPU time in the kernel
	MaxRSS int64          // largest resident set of one process, in bytes; 0 when unknown

	// Peak is the most that the tree, or one process of it, was seen to use, in
	// bytes; 0 without a limit of its memory.
	Peak int64
	// Over tells that the tree was ended since it used more memory than it may.
	Over bool
	// Near tells that a process was seen that had nearly as much memory as its
	// RLIMIT_DATA lets it have, so an allocation may have failed.
	Near bool

	// Lost tells that the launcher was killed before it could report: then the
	// server was killed with it, and nothing else here is known.
	Lost bool
}

// String says it the way a shell user knows it: "exit status 3", "signal:
// killed".
func (e Exit) String() string {
	switch {
	case e.Lost:
		return "killed together with its launcher"
	case e.Over:
		return "killed: it used more memory than it may"
	case e.Signal != 0:
		return "signal: " + e.Signal.String()
	}
	return fmt.Sprintf("exit status %d", e.Code)
}
