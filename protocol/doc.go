// SPDX-License-Identifier: Apache-2.0

// Package protocol is MCP on the wire: frames, raw JSON-RPC messages, ids, and
// the few edits that a gateway has to make to what it forwards.
//
// # Raw
//
// Params, results and errors are kept as the JSON text in which they arrived
// ([Raw]). A gateway that decodes them into Go types loses what it doesn't know:
// unknown members, the order of keys, integers past 2^53, an empty text. Nothing
// here does. Where something has to change (an id, a progress token, a tool's
// name) an [Object] replaces one member and leaves every other byte alone.
//
// # Two edges
//
// What a client sends is untrusted input to a decision, and JSON decoders
// disagree on duplicate and on differently-cased member names. [ParseStrict]
// and [ParseObjectStrict] refuse both, and what is sent on has no blanks: where
// the client wrote some it is written again from its tokens, whose order and text
// stay, and where it wrote none that would be the same, byte for byte. What a
// server sends is only carried, so [Parse] and [ParseObject] are tolerant.
//
// # Framing
//
// The stdio transport is one message a line (MCP specification, "Transports",
// stdio). [Reader] reads lines with a cap and survives a longer one; what is no
// JSON-RPC message is the caller's to log and skip.
//
// # Eras
//
// Revisions up to 2025-11-25 begin with an initialize handshake; 2026-07-28
// dropped it. [Revision] knows both; this version of garra speaks the first.
package protocol
