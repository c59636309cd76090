// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// startInit starts an init in new namespaces, which starts a stage with the given
// socket, and returns the stage's process id as it is outside.
func (l *launcher) startInit(c *confinement, socket int) (stage int, failure *failedReport) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, newFailedReport(OpLaunch, "making a socket", err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	ours := os.NewFile(uintptr(fds[0]), "init")
	pid, err := syscall.ForkExec(launcherPath(), []string{initName}, &syscall.ProcAttr{
		Env:   launcherEnv(),
		Files: []uintptr{0, 1, 2, uintptr(fds[1]), uintptr(socket)},
		Sys:   initAttr(c),
	})
	syscall.Close(fds[1])
	if err != nil {
		ours.Close()
		return 0, newFailedReport(OpConfine, "making namespaces", err)
	}
	l.init = pid
	reports := json.NewDecoder(ours)
	var first initReport
	err = json.NewEncoder(ours).Encode(c)
	if err == nil {
		err = reports.Decode(&first)
	}
	switch {
	case err != nil:
		failure = newFailedReport(OpConfine, "hearing from the init", err)
	case first.Failed != nil:
		failure = first.Failed
	}
	// The init has one child, and collects it only after the launcher has heard of it.
	inside := children(pid)
	if failure == nil && len(inside) != 1 {
		failure = newFailedReport(OpConfine, "finding the stage", syscall.ESRCH)
	}
	if failure != nil {
		ours.Close()
		l.endInit()
		return 0, failure
	}
	l.news = make(chan *exitedReport, 1)
	go l.hear(ours, reports, l.news) // ends with the init; guard waits for it by the channel
	return inside[0], nil
}

// hear passes on that the server has exited, and closes the channel when the init's
// end of the socket does.
func (l *launcher) hear(socket *os.File, reports *json.Decoder, news chan<- *exitedReport) {
	defer close(news)
	defer socket.Close()
	for {
		var r initReport
		if err := reports.Decode(&r); err != nil {
			return
		}
		if r.Exited != nil {
			news <- r.Exited
		}
	}
}

// endInit ends the namespaces with all that is in them.
func (l *launcher) endInit() {
	if l.init == 0 {
		return
	}
	syscall.Kill(l.init, syscall.SIGKILL)
	syscall.Wait4(l.init, nil, 0, nil)
	l.init = 0
}

// initAttr makes namespaces. Whoever isn't root may do that in a user namespace alone,
// in which a user is who they were, and has privileges until the init drops them.
func initAttr(c *confinement) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if c.ownNetwork() {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if mayMakeNamespaces() {
		return attr
	}
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// An execution takes them from who isn't root, unless they are ambient.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP}
	return attr
}

// mayMakeNamespaces reports whether this process is privileged enough for those that
// are no user namespaces.
func mayMakeNamespaces() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	err := unix.Capget(&header, &have[0])
	return err == nil && os.Geteuid() == 0 && have[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
