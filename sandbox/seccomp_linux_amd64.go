// SPDX-License-Identifier: Apache-2.0

package sandbox

import "golang.org/x/sys/unix"

const (
	canConfine = true
	auditArch  = unix.AUDIT_ARCH_X86_64
	// maxNumber is where the numbers of the x32 interface begin, which has most
	// calls a second time.
	maxNumber = 0x40000000
)

// refusedHere are calls to refuse that this machine alone has.
func refusedHere() []uint32 {
	return []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USELIB, unix.SYS_USTAT,
		unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	}
}
