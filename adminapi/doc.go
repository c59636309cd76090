// SPDX-License-Identifier: Apache-2.0

// Package adminapi is garra over HTTP: the admin routes, health, and the MCP
// endpoints of the gateway behind one guard.
//
// # Two doors
//
//	socket   run.sock in the run folder, mode 0600. Whoever connects is told by
//	         the kernel's peer credentials; the same user may do everything and
//	         needs no token. Commands and `garra stdio` come this way.
//	address  a TCP address, loopback unless told otherwise. /mcp takes a client
//	         token, /admin an admin token (RFC 6750).
//
// # Browsers
//
// A web page must not reach a gateway on the same machine. At the address a
// foreign Host is refused (DNS rebinding), and so are a foreign Origin and
// cross-site fetches.
//
// # Errors
//
// Admin routes answer {"error":{"code","message","fix"}} with a fitting status.
package adminapi
