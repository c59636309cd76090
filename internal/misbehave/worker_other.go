// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package misbehave

import "syscall"

// workerAttr: there are no sessions here.
func workerAttr(bool) *syscall.SysProcAttr { return nil }
