// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter is a program for the kernel's packet filter, which looks at each system
// call (seccomp(2)). It is written from the end to the beginning in no place: each
// rule jumps over itself when it doesn't apply.
type filter struct{ program []unix.SockFilter }

// Where a filter finds what in struct seccomp_data, on a little-endian machine.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // of 8 bytes each, the lower half first
)

// deny answers a system call with an error.
func deny(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

func (f *filter) add(code uint16, jumpTrue, jumpFalse uint8, k uint32) {
	f.program = append(f.program, unix.SockFilter{Code: code, Jt: jumpTrue, Jf: jumpFalse, K: k})
}

func (f *filter) load(offset uint32)   { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0, 0, offset) }
func (f *filter) answer(action uint32) { f.add(unix.BPF_RET|unix.BPF_K, 0, 0, action) }

// when has the following skip instructions done only if the loaded word is value.
func (f *filter) when(value uint32, skip uint8) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, skip, value)
}

// refuse answers one system call with an error, whatever its arguments are.
func (f *filter) refuse(number uint32, errno unix.Errno) {
	f.when(number, 1)
	f.answer(deny(errno))
}

// refuseArg does so if the lower half of an argument, as far as mask goes, is one of
// the values. All that are looked at are of type int, of which the kernel ignores the
// other half too.
func (f *filter) refuseArg(number uint32, arg int, mask uint32, values []uint32, errno unix.Errno) {
	block := new(filter)
	block.load(offsetArgs + 8*uint32(arg))
	block.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0, 0, mask)
	for _, value := range values {
		block.refuse(value, errno)
	}
	block.load(offsetNumber)
	f.block(number, block)
}

// refuseBits does so if one of some bits of an argument is set.
func (f *filter) refuseBits(number uint32, arg int, bits uint32, errno unix.Errno) {
	block := new(filter)
	block.load(offsetArgs + 8*uint32(arg))
	block.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, 0, 1, bits)
	block.answer(deny(errno))
	block.load(offsetNumber)
	f.block(number, block)
}

// block has another filter's instructions done for one system call.
func (f *filter) block(number uint32, of *filter) {
	f.when(number, uint8(len(of.program)))
	f.program = append(f.program, of.program...)
}

// newFilter makes the filter for a policy. It refuses what no server needs and many
// attacks do: the ways into other processes, into the kernel's less trodden parts, to
// new namespaces, and to sockets that no list of hosts or files governs.
func newFilter(p *confinement) *filter {
	f := new(filter)
	f.load(offsetArch)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 1, 0, auditArch)
	f.answer(unix.SECCOMP_RET_KILL_PROCESS) // another machine's numbers mean other calls
	f.load(offsetNumber)
	if maxNumber > 0 {
		f.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, 0, 1, maxNumber)
		f.answer(deny(unix.ENOSYS))
	}
	for _, number := range refusedCalls() {
		f.refuse(number, unix.EPERM)
	}
	for _, number := range missingCalls() {
		f.refuse(number, unix.ENOSYS)
	}
	f.sockets(p)
	if p.gated() {
		f.gate()
	}
	if !p.Browser {
		for _, number := range browserCalls() {
			f.refuse(number, unix.EPERM)
		}
		f.refuseBits(unix.SYS_CLONE, 0, newNamespaces, unix.EPERM)
	}
	// Its flags are in memory, where a filter can't look; libraries fall back on clone.
	f.refuse(unix.SYS_CLONE3, unix.ENOSYS)
	f.refuseArg(unix.SYS_IOCTL, 1, allBits, []uint32{unix.TIOCSTI, unix.TIOCLINUX}, unix.EPERM)
	f.answer(unix.SECCOMP_RET_ALLOW)
	return f
}

const (
	allBits       = 0xffffffff
	socketTypes   = 0xf // without SOCK_NONBLOCK and SOCK_CLOEXEC
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
)

// sockets leaves IP, of the kinds that policies can speak of. Pairs of Unix sockets,
// which lead nowhere else, are made by another call.
func (f *filter) sockets(p *confinement) {
	var families []uint32
	if p.Browser {
		families = append(families, unix.AF_UNIX, unix.AF_NETLINK)
	} else if p.walledSockets() {
		families = append(families, unix.AF_UNIX)
	}
	if p.Network != NetworkNone || p.Level == LevelNamespaces { // which has a network of its own then
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	block := new(filter)
	block.load(offsetArgs)
	for i, family := range families {
		block.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, uint8(len(families)-i), 0, family)
	}
	block.answer(deny(unix.EAFNOSUPPORT))
	block.load(offsetNumber)
	f.block(unix.SYS_SOCKET, block)
	f.refuseArg(unix.SYS_SOCKET, 1, socketTypes, []uint32{unix.SOCK_RAW, unix.SOCK_PACKET}, unix.EPERM)
	// No rule for TCP is one for MPTCP, so far (landlock(7)).
	f.refuseArg(unix.SYS_SOCKET, 2, allBits, []uint32{unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT)
}

// walledSockets reports whether Unix sockets lead no further than files do: those with a
// path are in the server's own file system, and Landlock keeps it from abstract ones since
// its sixth version. Else there is no telling a server's own from another program's.
func (c *confinement) walledSockets() bool {
	return c.Level == LevelNamespaces && landlockVersion() >= 6
}

// gate has calls answered that make, or let others make, a connection. To connect while
// sending is refused, after which programs connect first (tcp(7), TCP_FASTOPEN).
func (f *filter) gate() {
	for _, number := range []uint32{unix.SYS_CONNECT, unix.SYS_LISTEN} {
		f.when(number, 1)
		f.answer(unix.SECCOMP_RET_USER_NOTIF)
	}
	f.refuseBits(unix.SYS_SENDTO, 3, unix.MSG_FASTOPEN, unix.EOPNOTSUPP)
	f.refuseBits(unix.SYS_SENDMSG, 2, unix.MSG_FASTOPEN, unix.EOPNOTSUPP)
	f.refuseBits(unix.SYS_SENDMMSG, 3, unix.MSG_FASTOPEN, unix.EOPNOTSUPP)
}

// install has the filter hold for this thread, and what it executes.
func (f *filter) install() error {
	_, err := f.set(0)
	return err
}

// listen does so, and returns what receives the calls that are to be answered. A signal
// must not end such a call and begin it again, or a program with a timer that is faster
// than a connection would never have one; before Linux 5.19 it may.
func (f *filter) listen() (fd int, err error) {
	fd, err = f.set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if err == unix.EINVAL {
		fd, err = f.set(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	return fd, err
}

func (f *filter) set(flags uintptr) (result int, err error) {
	program := unix.SockFprog{Len: uint16(len(f.program)), Filter: &f.program[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// refusedCalls are the system calls that are an error: not permitted.
func refusedCalls() []uint32 {
	return append([]uint32{
		// into other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
		unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		// mounts
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_TREE_ATTR, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		// files without their names
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		// the kernel
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_ACCT,
		unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_VHANGUP, unix.SYS_PERSONALITY,
		// the kernel's keys, which no namespace divides
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// the machine's clock and name
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	}, refusedHere()...)
}

// missingCalls are those that are answered as by a kernel without them, since
// programs know how to do without: io_uring makes sockets past every filter.
func missingCalls() []uint32 {
	return []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}
}

// browserCalls are those of which a browser makes its own sandbox.
func browserCalls() []uint32 { return []uint32{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT} }
