// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package hangup

import "syscall"

// hungUp can't be told.
func hungUp(syscall.RawConn) bool { return false }
