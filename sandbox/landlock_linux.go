// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights to files (landlock(7)). A path to read is one to execute too: a program's
// folder holds programs, and what it runs is confined as it is.
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_DIR
	// Without devices, which nobody who has no privileges can make, nor drive.
	rightsToWrite = rightsToRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsToUse = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsToAll = rightsToWrite | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// What can be granted for something that is no folder.
	rightsToFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// A ruleset is a Landlock ruleset that is being made.
type ruleset struct {
	fd      int
	handled uint64
}

// rulesetAttr is struct landlock_ruleset_attr; a kernel that doesn't know its end
// takes it as long as that is zero.
type rulesetAttr struct{ files, net, scoped uint64 }

// landlockVersion returns the version of the kernel's interface, 0 when there is none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// newRuleset makes a ruleset that handles all that a version of the interface can.
func newRuleset(version int) (*ruleset, error) {
	attr := rulesetAttr{files: rightsToAll}
	for _, later := range []struct {
		since int
		right uint64
	}{
		{2, unix.LANDLOCK_ACCESS_FS_REFER},
		{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE},
		{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
	} {
		if version < later.since {
			attr.files &^= later.right
		}
	}
	if version >= 6 {
		attr.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, errno
	}
	return &ruleset{fd: int(fd), handled: attr.files}, nil
}

// allow grants rights to a path and to what is below it. The path has no symbolic
// link in it: one that was put there later would grant what nobody meant.
func (r *ruleset) allow(path string, rights uint64) error {
	fd, err := openPath(path)
	if passesOver(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsToFile
	}
	// struct landlock_path_beneath_attr is packed: 8 and 4 bytes.
	rule := struct {
		allowed uint64
		parent  int32
	}{rights & r.handled, int32(fd)}
	if rule.allowed == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// restrict has the ruleset hold for this thread, and what it executes.
func (r *ruleset) restrict() error {
	_, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0)
	unix.Close(r.fd)
	if errno != 0 {
		return errno
	}
	return nil
}

// openPath opens a path that has no symbolic link in it, to speak of it.
func openPath(path string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err = unix.Openat2(unix.AT_FDCWD, path, &how)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before Linux 5.6, or a filter that is as old
		return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	}
	return fd, err
}

// passesOver reports whether a path that could not be opened simply grants nothing: it
// isn't there, a link took its place, or whoever starts the server can't reach it.
func passesOver(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR)
}
