// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package sandbox

// roles: the tests that need some run on Linux.
func roles() map[string]func(args []string) error { return nil }
