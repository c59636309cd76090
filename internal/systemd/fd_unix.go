// SPDX-License-Identifier: Apache-2.0

//go:build unix

package systemd

import "syscall"

// closeOnExec keeps a descriptor from children.
func closeOnExec(fd int) { syscall.CloseOnExec(fd) }
