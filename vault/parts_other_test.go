// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package vault

// addPlatformParts adds nothing.
func addPlatformParts(map[string]func([]string) error) {}
