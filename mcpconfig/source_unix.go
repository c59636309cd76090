// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpconfig

import "syscall"

// nonBlock keeps open(2) from waiting for the other end of a named pipe.
const nonBlock = syscall.O_NONBLOCK
