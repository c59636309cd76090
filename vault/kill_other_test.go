// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package vault

// addKillParts adds nothing.
func addKillParts(map[string]func([]string) error) {}
