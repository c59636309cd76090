// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// confine has the policy hold for this thread, whose program's execution comes next. On
// an error it returns which step failed: an index of confineSteps.
func (c *confinement) confine() (step int, err error) {
	for i, do := range []func() error{
		c.enterDir, dropCapabilities, forbidPrivileges, c.restrictFiles, c.filterCalls, c.verify,
	} {
		if err := do(); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// enterDir enters the working directory again: in namespaces the one that was entered
// outside is another.
func (c *confinement) enterDir() error {
	if len(c.Dir) == 0 || c.Level != LevelNamespaces {
		return nil
	}
	return syscall.Chdir(string(c.Dir))
}

// dropCapabilities takes away every privilege that a process of this user has
// (capabilities(7)). Root has them all, with which no other wall would stand.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) { // before Linux 4.3
		return err
	}
	for capability := uintptr(0); ; capability++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, capability, 0, 0, 0)
		if err != nil {
			break // there are no more
		}
		if has == 0 {
			continue
		}
		// Only a privileged process may: one without has none to lose, and can't gain
		// any either after the next step.
		err = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// forbidPrivileges has no execution ever give any: setuid programs run as their caller.
func forbidPrivileges() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }

// restrictFiles leaves what is in the lists, by Landlock. In namespaces it is the
// second wall, and there may be kernels without it.
func (c *confinement) restrictFiles() error {
	if c.Level == LevelBasic {
		return nil
	}
	version := landlockVersion()
	if version == 0 {
		if c.Level == LevelNamespaces {
			return nil
		}
		return unix.ENOSYS
	}
	rules, err := newRuleset(version)
	if err != nil {
		return err
	}
	for _, r := range c.rules() {
		if err := rules.allow(r.path, r.rights); err != nil {
			return err
		}
	}
	return rules.restrict()
}

// A rule gives rights to a path, which has no symbolic link in it.
type rule struct {
	path   string
	rights uint64
}

// rules are what Landlock is to allow.
func (c *confinement) rules() (list []rule) {
	for _, device := range devices() {
		list = append(list, rule{device, rightsToUse})
	}
	process := uint64(rightsToRead)
	if c.Browser {
		process |= unix.LANDLOCK_ACCESS_FS_WRITE_FILE // of /proc/self/uid_map
	}
	list = append(list, rule{"/proc", process})
	write := toStrings(c.Write)
	if c.Level == LevelNamespaces { // they are the server's own there
		write = append(write, "/tmp", "/dev/shm")
	}
	for _, g := range resolveAll(append(systemPaths(), toStrings(c.Read)...), write) {
		rights := uint64(rightsToRead)
		if g.write {
			rights = rightsToWrite
		}
		list = append(list, rule{g.path, rights})
	}
	return list
}

// filterCalls refuses the system calls that no server needs.
func (c *confinement) filterCalls() error {
	if !c.gated() {
		return newFilter(c).install()
	}
	fd, err := newFilter(c).listen()
	if err != nil {
		return err
	}
	defer unix.Close(fd) // the server must not have it
	return sendFiles(controlFD, partListener, fd)
}

// errHollow is why a level can't be had of which every step seemed to succeed.
const errHollow = syscall.EUCLEAN

// verify tries, in a probe, what must fail now.
func (c *confinement) verify() error {
	if !c.Probe {
		return nil
	}
	if fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE); err == nil {
		unix.Close(fd)
		return errHollow
	}
	if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0); c.Level == LevelLandlock && err == nil {
		unix.Close(fd)
		return errHollow
	}
	return nil
}
