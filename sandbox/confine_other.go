// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

// canConfine: what this system has for it is not used.
const canConfine = false

// landlockVersion: it is Linux's.
func landlockVersion() int { return 0 }
