// SPDX-License-Identifier: Apache-2.0

// Package catalog knows what the servers offer: it discovers their tools,
// prompts, resources and templates page by page, gives tools and prompts the
// names that clients of all servers see, and finds the server behind a name.
//
// # Names
//
// A tool of server S is named S__tool. The name depends on nothing but those
// two: not on other servers, nor on the order in which they start. Where the
// plain form would be longer than 64 characters, hold another character than
// [A-Za-z0-9_-], or could be read as another server's, the name ends in _ and
// eight hex digits of a digest of both parts instead ([Expose]).
package catalog
