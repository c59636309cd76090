// SPDX-License-Identifier: Apache-2.0

//go:build unix

package stores

import (
	"os/exec"
	"syscall"
)

// alone has what the command starts end with it when its time is over.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// endAll ends what the command has left in its process group.
func endAll(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be nothing left
	}
}
