// SPDX-License-Identifier: Apache-2.0

// Package mcpconfig reads, checks, edits and watches the two files that name MCP servers:
// mcp.json and the mcp section of config.yml, both in one configuration folder.
//
// # Words
//
//   - An entry is what stands under a server's name in a file. A field is a key of an entry
//     that garra knows; it has one documented name and further spellings (snake_case, and the
//     names that other MCP clients use). The table in fields.go lists all of them, and parsing,
//     the JSON Schema, restarts and the "no effect yet" notes follow from that table.
//   - A [Server] is the model of one valid entry. Its values stand as written: references such
//     as vault:KEY and ${NAME} are kept, so a model never holds a secret that the file doesn't.
//   - A [Finding] is something that a person should know about a file, with its place, a stable
//     code and a way to mend it.
//
// # Loading
//
// [Load] never fails because of what a file says. A bad entry is reported and left out alone;
// a file that can't be parsed is reported and contributes nothing (see [Config.Unparsable]).
// Messages never repeat the value of env, headers, args or url, which may be secrets.
//
// JSON may have comments, trailing commas and a byte order mark. YAML is one document; merge
// keys and aliases work, within a bound. Both become the same small tree of nodes that know
// their place in the file, so everything after the parsers is written once.
//
// # Saving
//
// A [Document] changes one file and leaves every byte alone that the change doesn't need.
// Each edit is parsed again and compared with what was meant before it is accepted; where the
// two differ the edit is refused and the document stays as it was.
package mcpconfig
