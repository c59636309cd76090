// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the time of the clock that the manager has, too; 0 when it can't be had.
func monotonic() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
