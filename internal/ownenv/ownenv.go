// SPDX-License-Identifier: Apache-2.0

// Package ownenv takes secrets out of this process's own environment, in which a
// service manager or a shell handed them over. Unsetting a variable is not enough:
// the system goes on to show the memory that held it when the process began, as
// /proc/PID/environ on Linux (proc_pid_environ(5)), and so do core files.
package ownenv

import (
	"os"
	"unsafe"
)

// Take returns a variable's value and removes the variable from the environment:
// from what this process and its children see, from the memory of the Go runtime,
// and, where that can be done, from what the system shows of this process. ok is
// false when it is not set. Call it before other goroutines read the environment.
func Take(name string) (value []byte, ok bool) {
	text, ok := os.LookupEnv(name)
	if !ok {
		return nil, false
	}
	value = []byte(text)
	os.Unsetenv(name)
	wipe(text)
	forget(name)
	return value, true
}

// wipe overwrites the text of a variable. The runtime made a copy of its own of each
// variable when it started or was told to set one, so this is no constant.
func wipe(text string) {
	if text != "" {
		clear(unsafe.Slice(unsafe.StringData(text), len(text)))
	}
}
