// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs MCP servers that speak over stdio: it starts them,
// speaks to them, watches, restarts and stops them.
//
// # Words
//
//	server   one entry of the configuration, whether a process runs or not
//	run      one process of a server, from building its environment to the
//	         moment when its whole tree is gone
//	owner    the goroutine that owns a server's state; everybody else sends it
//	         a command or reads the last published status
//	link     JSON-RPC over a run's pipes: ids, progress tokens, the calls in flight
//	policy   when a run that failed is tried again
//
// # How it holds together
//
// [Supervisor.Apply] makes the set of servers equal to a configuration and
// touches only what changed. Each [Server] is a source.Source. Its owner starts
// runs and learns from them, by message, that they were spawned, became ready
// or ended; what has happened so far is published as one immutable snapshot, so
// that a call to a ready server takes no detour over the owner.
//
// Stopping follows the order of the MCP specification ("Lifecycle", shutdown,
// stdio): close standard input, wait, SIGTERM, wait, SIGKILL to the whole tree.
//
// What survives even that is reported, by Stop and by [Supervisor.Close]. A name
// that comes back starts only when the last process of that name is gone, since
// two processes of one server would meet in its files.
//
// A run that ends while its server is wanted is a failure, whatever its exit
// code. The server is then in backoff, later parked: tried again every few
// minutes, and at once on a call, an edit or a restart. Causes that trying again
// can't mend (the command isn't there, a variable is unset) make it failed, and
// it is looked at again until they are gone.
//
// A call waits for a server that may become ready within the call's time. One
// that its server can't have got, since the process was gone before the request
// was written, is sent to the next run; one that was written fails with its run,
// since nobody knows how far it got.
//
// # Client capabilities
//
// A server is shared by all clients, so it is initialized once with a fixed list
// ([ClientCapabilities]), not with that of whoever came first.
package supervisor
