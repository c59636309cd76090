// SPDX-License-Identifier: Apache-2.0

// Package remote speaks to MCP servers over HTTP: it connects, watches, and
// connects again.
//
// # Words
//
//	server   one entry of the configuration with a url
//	run      one session with a server, from the handshake to its end
//	runner   makes the runs of one server
//	link     JSON-RPC over a run: ids, progress tokens, the calls in flight
//	wire     how a link's messages cross HTTP: streamable, or the older HTTP+SSE
//	target   the url and headers of an entry, whose references are resolved for
//	         each request and never kept
//	guard    decides which addresses may be connected to
//
// # How it holds together
//
// [Manager.Apply] makes the set of servers equal to the entries of a
// configuration that have a url, and touches only what changed. When a server is
// connected to, tried again and left, and who waits for it, is
// internal/lifecycle's: one that can't be reached is in backoff and later parked;
// one whose cause trying again can't mend (an unset variable, a refused token, a
// forbidden address) is failed and looked at ever less often.
//
// A call whose request certainly had no effect (it could not be sent, or the
// server answered that it doesn't know the session: 404, MCP specification,
// "Transports", session management) is made again on the next run, for a lost
// session once. Any other failure ends the call, since nobody knows how far it
// got. A stream that breaks is resumed from its last event where the server
// gave events ids.
//
// Over streamable HTTP, what a server asks or tells on the stream of a call is
// for the client of that call. What comes on the standing stream, or over
// HTTP+SSE where there is but one, is for the only client with calls in flight;
// with several, a request fails at once, since the wrong client must never get
// it.
//
// # What is not trusted
//
// A name is resolved when a connection is made, and the address is looked at
// then, so that a name which changes its meaning gains nothing: addresses that
// the internet doesn't route (private, loopback, link-local and with it the
// usual metadata service, shared, multicast, reserved) are refused, unless the
// url itself names that address, or localhost. Redirects are followed only within the
// origin of the url. Proxies are taken from the environment as net/http does;
// behind one, names are resolved by the proxy, and what it may reach is for the
// proxy to decide. Certificates are always verified.
//
// A token of a login (package oauth) goes to the url that it was made out for, and
// to no other; what a client of garra sends as its own token goes nowhere. What
// asks an authorization server may go to fewer addresses than what asks the
// server itself: the url was chosen by a person, all others by servers.
//
// What a server sends is bounded: headers, messages and events have a largest
// size after decompression, and a call has its time, whatever trickles in.
package remote
