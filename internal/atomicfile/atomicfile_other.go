// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package atomicfile

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: a new file inherits the folder's access list.
func keepOwner(*os.File, fs.FileInfo) {}

// syncDir does nothing: a folder cannot be flushed on these systems.
func syncDir(string) error { return nil }
