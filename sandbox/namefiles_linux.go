// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// nameFiles is where the files are made that say where to ask for names.
const nameFiles = "/dev/garra"

// A nameFile takes the place of one of the host, which would lead past the gate: to name
// servers that can't be reached from the server's network, and to addresses that the gate
// was not asked for and doesn't know a name of.
type nameFile struct{ name, path, text string }

func newNameFiles() []nameFile {
	hosts := "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
	if name, err := os.Hostname(); err == nil && name != "" {
		hosts += "127.0.0.1 " + name + "\n"
	}
	return []nameFile{
		{"resolv.conf", "/etc/resolv.conf", "nameserver 127.0.0.1\noptions edns0\n"},
		{"hosts", "/etc/hosts", hosts},
	}
}

// mountNameFiles puts those files over the host's, wherever links lead to these.
func (r *root) mountNameFiles(c *confinement) error {
	if !c.gated() {
		return nil
	}
	folder, err := r.mountMemory(nameFiles, sizeOfMasks, "0755")
	if err != nil {
		return err
	}
	r.masks = append(r.masks, folder)
	for _, file := range newNameFiles() {
		if err := r.mountNameFile(folder, &file); err != nil {
			return fmt.Errorf("mounting %q: %w", file.path, err)
		}
	}
	return nil
}

func (r *root) mountNameFile(folder int, file *nameFile) error {
	path := file.path
	if real, _, err := resolve(path); err == nil {
		path = real
	}
	at, err := r.place(path, false)
	if passesOver(err) || errors.Is(err, unix.EROFS) {
		return nil // the host has no such file, and all of the folder is the host's
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	fd, err := unix.Openat(folder, file.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(file.text)); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, 0o444); err != nil { // whatever the umask is
		return err
	}
	mount, err := unix.OpenTree(folder, file.name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	attr := unix.MountAttr{Attr_set: entryRead.attributes()}
	if err := unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return err
	}
	return attach(mount, at)
}
