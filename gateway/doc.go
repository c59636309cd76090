// SPDX-License-Identifier: Apache-2.0

// Package gateway is the MCP server that clients see. It holds their sessions,
// routes what they ask to the tool sources, and takes every call down one path:
//
//	session → resolve the name → policy decides → source → result
//
// # Words
//
//	session   one client's conversation, over HTTP or a pair of pipes
//	view      what a session sees: all servers ([Gateway.All]) or one of them
//	          ([Gateway.One])
//	upstream  one server as the gateway knows it: its entry, rules and source
//	outlet    the way to a client: the stream of one request, or the session's own
//	exchange  one request of a client while it runs, seen from its source
//
// # Results
//
// What a server answers reaches the client as it was written. An unknown or
// disallowed tool is a JSON-RPC error, -32602; a call that failed for any other
// reason is a result with isError and the reason under _meta["garra/error"], so
// that a model sees what happened (MCP specification, "Tools", error handling).
package gateway
