// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package pidone

// Main returns: no program is process 1 here but the system's own.
func Main(...string) {}
