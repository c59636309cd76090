// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs MCP servers that speak over stdio: it starts them,
// speaks to them, watches, restarts and stops them.
//
// # Words
//
//	server   one entry of the configuration, whether a process runs or not
//	run      one process of a server, from building its environment to the
//	         moment when its whole tree is gone
//	runner   makes the runs of one server
//	link     JSON-RPC over a run's pipes: ids, progress tokens, the calls in flight
//
// # How it holds together
//
// [Supervisor.Apply] makes the set of servers equal to a configuration and
// touches only what changed. When a server is started, tried again and stopped,
// and who waits for it, is internal/lifecycle's; here is how its process is made,
// spoken to and brought down.
//
// Stopping follows the order of the MCP specification ("Lifecycle", shutdown,
// stdio): close standard input, wait, SIGTERM, wait, SIGKILL to the whole tree.
//
// What survives even that is reported, by Stop and by [Supervisor.Close]. A name
// that comes back starts only when the last process of that name is gone, since
// two processes of one server would meet in its files.
//
// A call that its server can't have got, since the process was gone before the
// request was written, is sent to the next run; one that was written fails with
// its run.
//
// # Client capabilities
//
// A server is shared by all clients, so it is initialized once with a fixed list
// (package eras has it), not with that of whoever came first.
package supervisor
