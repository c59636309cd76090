// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the life of a server of any kind: when it is started and
// stopped, when it is tried again, who waits for it, and what they are told.
//
// # Words
//
//	server   one entry of the configuration, whether it runs or not
//	run      the time from one start of a server to its end: a process, or a session
//	runner   makes the runs of one server; it is all in which the kinds differ
//	link     the way to a server over one run that is ready
//	owner    the goroutine that owns a server's state; everybody else sends it
//	         a command or reads the last published status
//	policy   when a run that failed is tried again
//	set      the servers of one kind in a configuration
//
// # How it holds together
//
// [Set.Apply] makes the servers equal to the entries of a configuration and
// touches only what changed. Each [Server] is a source.Source. Its owner starts
// runs and learns from them, by message, what becomes of them; what has happened
// so far is published as one immutable snapshot, so that a call to a ready server
// takes no detour over the owner.
//
// A run that ends while its server is wanted is a failure, whatever its reason.
// The server is then in backoff, later parked: tried again every few minutes, and
// at once on a call, an edit or a restart. Causes that trying again can't mend
// (the command isn't there, a variable is unset) make it failed, and it is looked
// at again until they are gone.
//
// A call waits for a server that may become ready within the call's time. One
// that certainly had no effect, since it never reached the server, is made again
// over the next run's link; any other fails with its run, since nobody knows how
// far it got.
package lifecycle
