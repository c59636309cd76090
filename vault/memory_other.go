// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package vault

// raiseLimit does nothing: these systems have no such limit to raise.
func raiseLimit() {}
