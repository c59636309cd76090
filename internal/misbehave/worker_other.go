// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package misbehave

import "syscall"

// workerAttr: there are no sessions here.
func workerAttr(bool) *syscall.SysProcAttr { return nil }

// stopSelf needs a signal that this system hasn't.
func stopSelf(*call) string { return toolError("this system stops no processes") }
