// SPDX-License-Identifier: Apache-2.0

package misbehave

import (
	"runtime/debug"
	"slices"
)

// Instrumented reports whether this binary has the race detector in it. The server has
// it too then, and takes many times the memory that it would: no limit suits it.
func Instrumented() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
