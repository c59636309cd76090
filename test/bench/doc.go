// SPDX-License-Identifier: Apache-2.0

// Program bench measures what garra costs: the same load over a direct pipe to
// a server and through the built binary, over stdio and HTTP, in turn in one
// run, so that what counts are ratios. It can drive any other gateway by URL,
// and others that npm has beside garra. docs/performance.md says what each
// number means. The program is also its own counterparts: the least server on a
// pipe (role child), and on HTTP (role bare). No SDK is involved anywhere.
package main
