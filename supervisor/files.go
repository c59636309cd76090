// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/sandbox"
)

// newFileDir returns a path, at which there is nothing, for the secret files of one
// run: in memory where the system has such a folder (the XDG Base Directory
// Specification's XDG_RUNTIME_DIR, or /dev/shm), so that they never come to a disk.
func newFileDir(host envbuild.Host) string {
	base := os.TempDir()
	runtimeDir, _ := host.Lookup("XDG_RUNTIME_DIR")
	for _, dir := range []string{runtimeDir, "/dev/shm"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && filepath.IsAbs(dir) {
			base = dir
			break
		}
	}
	return filepath.Join(base, "garra-"+rand.Text())
}

// filesOf are the secret files that a server is to find.
func filesOf(spec *envbuild.Spec) sandbox.Files {
	files := sandbox.Files{Dir: spec.FileDir}
	for _, file := range spec.Files {
		files.All = append(files.All, sandbox.File{Name: file.Name, Content: []byte(file.Content())})
	}
	return files
}
