// SPDX-License-Identifier: Apache-2.0

// Package source is what the four kinds of tool source have in common: a
// supervised stdio server, a remote MCP server, a REST connector, a local CLI.
//
// The gateway speaks to a [Source] in MCP messages that could as well cross a
// network, and nothing above it knows of which kind a source is.
//
//	call     one request on its way to a source, and the way back to its client
//	client   who caused a call: what a source asks or tells goes to it
//	status   what a person sees of a source, in states that everybody shares
//	failure  why a call did not reach its end, of a kind that stays apart
package source
