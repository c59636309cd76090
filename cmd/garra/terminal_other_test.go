// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package main

import (
	"fmt"
	"os"
)

// onTerminal has no way to open a terminal here; scripts that need one are
// skipped.
func onTerminal([]string) int {
	fmt.Fprintln(os.Stderr, "no pseudo-terminal on this system")
	return 1
}

// typed runs nothing here, likewise.
func typed(string, []string) int { return onTerminal(nil) }
