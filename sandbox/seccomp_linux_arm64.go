// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const (
	canConfine = true
	auditArch  = unix.AUDIT_ARCH_AARCH64
	maxNumber  = 0 // there is one interface
)

// refusedHere are calls to refuse that this machine alone has.
func refusedHere() []uint32 { return []uint32{unix.SYS_KEXEC_FILE_LOAD} }
