// SPDX-License-Identifier: Apache-2.0

//go:build unix

package misbehave

import "syscall"

// workerAttr puts a worker into a session of its own, or into none.
func workerAttr(session bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: session}
}
