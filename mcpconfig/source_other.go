// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package mcpconfig

// nonBlock is nothing here: these systems have no named pipes in the file system.
const nonBlock = 0
