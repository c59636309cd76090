// SPDX-License-Identifier: Apache-2.0

// Package version says which garra this is.
package version

import "runtime/debug"

// String returns the version of the main module as the go command recorded it,
// "devel" for a build outside of version control.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
