// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package rig is what end-to-end tests stand on.
//
// A [Home] is a user: folders of its own, from which garra's environment is made.
// Every process of a test has HOME in it, by which what is left over is found,
// whoever its parent is by then. A [Gateway] is a `garra serve` on a free port; the
// test fails when it ends with an error or leaves a process. A [Client] is a raw
// MCP client over HTTP ([Web]) or a process's standard input and output ([Pipe]),
// which sees messages as they were written. Servers that misbehave are the test
// binary itself, see internal/misbehave.
//
// Tests wait for conditions and never sleep. Where garra promises to be quick,
// the bound is far beyond the promise, since CI is slow; the log says how long
// it took.
package rig
