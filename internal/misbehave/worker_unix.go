// SPDX-License-Identifier: Apache-2.0

//go:build unix

package misbehave

import (
	"os"
	"syscall"
)

// workerAttr puts a worker into a session of its own, or into none.
func workerAttr(session bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: session}
}

// stopSelf stops the process as a terminal does; the answer is sent before.
func stopSelf(c *call) string {
	c.out.reply(c.id, textResult("stopping"))
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		c.out.note(err.Error())
	}
	return ""
}
