// SPDX-License-Identifier: Apache-2.0

// Package sandbox starts MCP servers as what they are, strangers' programs, and
// sees to it that all of a server's processes end.
//
// # Words
//
//	host      the process that calls Start: garra
//	launcher  garra executed again: the server's parent, guardian and reaper
//	stage     garra executed once more: what becomes a server with limits or a policy
//	init      garra executed in namespaces of its own: process 1 in there
//	server    the MCP server's main process, the only own child of the launcher or the init
//	tree      the server and everything that ever descended from it
//	stray     a process that outlived a launcher which was killed
//
// # How a server is started
//
// The host executes its own binary once per server (on Linux by
// /proc/self/exe, so that an upgrade which replaces or deletes the file doesn't
// matter). [Main] recognises that process by its argv[0] and turns it into the
// launcher. Host and launcher speak lines of JSON over a socket pair, the
// launcher's descriptor 3: the specification goes in, and what became of the
// server comes out. Nothing of it travels by arguments or environment, where
// other processes could read it.
//
// The launcher passes on nothing that was not asked for. The server's
// environment is exactly [Spec.Env]; its descriptors are 0, 1 and 2; signals
// have their default actions and, on Linux, none is blocked; RLIMIT_NOFILE is
// what the host was started with, before the Go runtime raised it; RLIMIT_CORE
// is 0, because a core file would hold the server's secrets. Nice value and
// umask stay. After that the launcher puts /dev/null in place of its own
// descriptors 0 to 2, so the server's pipes end when the server closes them.
//
// # How a tree ends
//
// The launcher is a child subreaper (prctl(2), PR_SET_CHILD_SUBREAPER):
// whatever the server forks, daemonises or puts into a session of its own stays
// below it. It kills all of that, again and again until nothing is left to wait
// for, when
//
//   - the server has exited,
//   - the host asks for it ([Process.Kill]), or
//   - the host is gone, by SIGKILL too: the socket's end is closed then.
//
// If somebody kills the launcher instead, the server dies with it
// (PR_SET_PDEATHSIG), and a host that called [Adopt] becomes the parent of what
// remains of the tree and kills that.
//
// # How a tree is limited
//
// With [Limits], the launcher starts the server in two steps. It makes control
// groups where it may (cgroups(7), either version), starts a stage, puts that into
// them and hands it the specification. The stage sets resource limits on itself and
// executes the server's program, so that no program of the tree ever ran without
// them, and the launcher never has them.
//
// The launcher then samples what the tree uses, and kills the tree when that is
// more than Limits.Memory, or when the kernel has killed a part of it for that. The
// groups are removed when the tree is gone. Their names tell which launcher made
// them, and the next start sweeps those of launchers that were killed.
//
// # How a tree is confined
//
// With a [Policy], the stage does more to itself before it executes the server's
// program, on one thread and in this order: it drops every capability, forbids new
// privileges, restricts files (landlock(7)) and filters system calls (seccomp(2)). None
// of it can be taken back, and all that the server starts inherits it.
//
// At [LevelNamespaces] the launcher executes an init in new namespaces of processes,
// mounts, System V IPC and host name, of a network unless the host's is to be used, and of
// users if it isn't root. The launcher does that, and not the host, since the host may be one
// whose memory can't be looked at, which therefore couldn't say who is who in a user
// namespace. The init makes a file system out of what the policy names, gives up its own
// privileges, starts the stage there, and tells the launcher of the server's end. When
// the init ends the kernel ends every other process of the namespace, and the init ends
// with the launcher (PR_SET_PDEATHSIG, and the end of its socket).
//
// A network of its own leads nowhere. If the policy lets the server reach something, the
// launcher is its gate: it answers questions for names, on sockets that the init handed
// over, and the calls that connect, which the stage's filter has the kernel ask about
// (seccomp_unotify(2)). What it refuses the host is told of ([Spec.Refused]).
//
// What a server can't do then is [Claims]; [Probe] finds out which level can be had.
//
// # What this can't do
//
// Without a policy, on Linux, a process of the same user may signal the launcher and may
// pretend to be one. A setuid program in the tree can't
// be killed by an unprivileged launcher, which then stays with it, and a setuid
// server doesn't get the parent-death signal (prctl(2)).
//
// Other Unix systems have process groups only. What leaves the server's group
// (setsid, setpgid) survives there; so does the group when the launcher itself
// is killed. That the host's death ends the group holds everywhere.
//
// On systems that are not Unix there is no launcher: Start runs the server
// directly, [Process.Signal] knows os.Kill alone, which ends the server's main
// process alone, and nothing ends the server when the host is killed.
package sandbox
