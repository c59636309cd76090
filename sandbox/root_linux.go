// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A root is the file system of a server while it is made: an empty one in memory, into
// which what the policy names is mounted at its own path, so that all else isn't there.
type root struct {
	fd    int
	masks []int // mounts that are read-only in the end
}

// scratch is where the new root is mounted until it is the root. What was there can't
// be seen meanwhile, so everything is taken hold of before.
const scratch = "/tmp"

// How much the file systems in memory may hold, which no limit of the server's memory
// counts everywhere.
const (
	sizeOfRoot  = "4m"
	sizeOfTmp   = "64m"
	sizeOfDev   = "64k"
	sizeOfShm   = "64m"
	sizeOfMasks = "1m"
)

// enterRoot makes the server's file system and enters it.
func (c *confinement) enterRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keeping mounts from spreading: %w", err)
	}
	entries, links := c.entries()
	taken, err := takeAll(entries)
	if err != nil {
		return err
	}
	nodes, err := takeAll(deviceEntries())
	if err != nil {
		return err
	}
	r, err := newRoot()
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return r.fill(c, nodes) },
		func() error { return r.link(links) },
		func() error { return r.mountAll(taken) },
		func() error { return r.mountNameFiles(c) },
		r.enter,
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// An entry is a path of the new root.
type entry struct {
	path string // as it really is
	kind entryKind
}

type entryKind int

// The kinds, as mount attributes (mount_setattr(2)).
const (
	entryRead entryKind = iota
	entryWrite
	entryDevice
	entryHidden
)

// attributes are those of a mount of that kind.
func (k entryKind) attributes() uint64 {
	switch k {
	case entryWrite:
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	case entryDevice:
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	return unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
}

// entries are the paths of the policy, above before below and each once, and the
// symbolic links that lead to them.
func (c *confinement) entries() (list []entry, links []symlink) {
	for _, g := range resolveAll(append(systemPaths(), toStrings(c.Read)...), toStrings(c.Write)) {
		kind := entryRead
		if g.write {
			kind = entryWrite
		}
		for _, path := range expand(g.path) {
			list = append(list, entry{path, kind})
		}
		links = append(links, g.links...)
	}
	for _, path := range toStrings(c.Hidden) {
		if real, _, err := resolve(path); err == nil {
			list = append(list, entry{real, entryHidden})
		}
	}
	slices.SortFunc(list, func(a, b entry) int {
		if order := strings.Compare(a.path, b.path); order != 0 {
			return order
		}
		return int(b.kind) - int(a.kind) // of two for one path, the wider
	})
	return thin(list), links
}

// expand returns the folders in the root in its place: there is one root, in which they
// are mounted.
func expand(path string) []string {
	if path != "/" {
		return []string{path}
	}
	entries, _ := os.ReadDir("/")
	var list []string
	for _, e := range entries {
		if e.Name() != "proc" && e.Name() != "dev" && e.Type()&os.ModeSymlink == 0 {
			list = append(list, "/"+e.Name())
		}
	}
	return list
}

// thin leaves out of a sorted list what is in another of the same kind anyway.
func thin(list []entry) (thinned []entry) {
	for _, e := range list {
		around, ok := innermost(thinned, e.path)
		if !ok || around.kind != e.kind && around.path != e.path {
			thinned = append(thinned, e)
		}
	}
	return thinned
}

// innermost returns the last entry of a sorted list that a path is in.
func innermost(list []entry, path string) (entry, bool) {
	for _, e := range slices.Backward(list) {
		if isBelow(path, e.path) {
			return e, true
		}
	}
	return entry{}, false
}

func deviceEntries() (list []entry) {
	for _, path := range devices() {
		list = append(list, entry{path, entryDevice})
	}
	return list
}

// A taken entry is a mount that isn't anywhere yet; of a hidden one, there is none.
type taken struct {
	entry
	fd     int
	folder bool
}

// takeAll takes hold of entries. What can't be reached grants nothing.
func takeAll(entries []entry) (list []taken, err error) {
	for _, e := range entries {
		t, err := take(e)
		if passesOver(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("taking hold of %q: %w", e.path, err)
		}
		list = append(list, t)
	}
	return list, nil
}

func take(e entry) (taken, error) {
	at, err := openPath(e.path)
	if err != nil {
		return taken{}, err
	}
	defer unix.Close(at)
	var info unix.Stat_t
	if err := unix.Fstat(at, &info); err != nil {
		return taken{}, err
	}
	t := taken{entry: e, folder: info.Mode&unix.S_IFMT == unix.S_IFDIR}
	if e.kind == entryHidden && t.folder {
		return t, nil
	}
	if e.kind == entryHidden {
		at = -1
	}
	if t.fd, err = cloneMount(at); err != nil {
		return taken{}, err
	}
	attr := unix.MountAttr{Attr_set: e.kind.attributes()}
	return t, unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// cloneMount returns a mount of what a descriptor stands for, with all that is mounted
// in it; of the null device for -1.
func cloneMount(at int) (fd int, err error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	if at < 0 {
		return unix.OpenTree(unix.AT_FDCWD, os.DevNull, flags)
	}
	return unix.OpenTree(at, "", flags|unix.AT_EMPTY_PATH)
}

// newRoot mounts an empty root.
func newRoot() (*root, error) {
	fd, err := memoryMount(sizeOfRoot, "0755", 0)
	if err != nil {
		return nil, err
	}
	at, err := unix.Open(scratch, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", scratch, err)
	}
	defer unix.Close(at)
	return &root{fd: fd, masks: []int{fd}}, attach(fd, at)
}

// memoryMount returns a mount of an empty file system in memory (tmpfs(5)).
func memoryMount(size, mode string, attributes int) (fd int, err error) {
	of, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("making a file system in memory: %w", err)
	}
	defer unix.Close(of)
	err = errors.Join(unix.FsconfigSetString(of, "size", size), unix.FsconfigSetString(of, "mode", mode))
	if err == nil {
		err = unix.FsconfigCreate(of)
	}
	if err == nil {
		fd, err = unix.Fsmount(of, unix.FSMOUNT_CLOEXEC, attributes|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	}
	if err != nil {
		return 0, fmt.Errorf("making a file system in memory: %w", err)
	}
	return fd, nil
}

// attach mounts a mount where a descriptor stands for.
func attach(mount, at int) error {
	const flags = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	return unix.MoveMount(mount, "", at, "", flags)
}

// fill mounts what every root has.
func (r *root) fill(c *confinement, nodes []taken) error {
	dev, err := r.mountMemory("/dev", sizeOfDev, "0755")
	if err != nil {
		return err
	}
	r.masks = append(r.masks, dev)
	if _, err := r.mountMemory("/dev/shm", sizeOfShm, "1777"); err != nil {
		return err
	}
	if _, err := r.mountMemory("/tmp", sizeOfTmp, "1777"); err != nil {
		return err
	}
	standard := []symlink{{"/dev/fd", "/proc/self/fd"}}
	for fd, name := range []string{"stdin", "stdout", "stderr"} {
		standard = append(standard, symlink{"/dev/" + name, fmt.Sprintf("/proc/self/fd/%d", fd)})
	}
	return errors.Join(r.link(standard), r.mountAll(nodes), r.mountProcesses(c))
}

// mountProcesses mounts the server's own processes. Through the files of the kernel in
// there root could command the machine, without any privilege.
func (r *root) mountProcesses(c *confinement) error {
	at, err := r.place("/proc", true)
	if err != nil {
		return err
	}
	unix.Close(at)
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RDONLY)
	if c.Browser {
		flags &^= unix.MS_RDONLY // of /proc/self/uid_map
	}
	if err := unix.Mount("proc", scratch+"/proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

// mountMemory mounts an empty file system in memory.
func (r *root) mountMemory(path, size, mode string) (mount int, err error) {
	mount, err = memoryMount(size, mode, 0)
	if err != nil {
		return 0, err
	}
	at, err := r.place(path, true)
	if err != nil {
		return 0, err
	}
	defer unix.Close(at)
	return mount, attach(mount, at)
}

// mountAll mounts what was taken hold of.
func (r *root) mountAll(list []taken) error {
	for _, t := range list {
		if err := r.mount(&t); err != nil && !passesOver(err) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("mounting %q: %w", t.path, err)
		}
	}
	return nil
}

func (r *root) mount(t *taken) error {
	if t.kind == entryHidden && t.folder {
		mask, err := r.mountMemory(t.path, sizeOfMasks, "0755")
		r.masks = append(r.masks, mask)
		return err
	}
	defer unix.Close(t.fd)
	at, err := r.place(t.path, t.folder)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return attach(t.fd, at)
}

// place opens a path of the root, which it makes where it isn't there yet. It follows
// no symbolic link: the server may have written what is mounted already.
func (r *root) place(path string, folder bool) (fd int, err error) {
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		path = "."
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	}
	fd, err = unix.Openat2(r.fd, path, &how)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	above, err := r.place(filepath.Dir(path), true)
	if err != nil {
		return 0, err
	}
	defer unix.Close(above)
	if folder {
		err = unix.Mkdirat(above, filepath.Base(path), 0o755)
	} else {
		err = unix.Mknodat(above, filepath.Base(path), unix.S_IFREG|0o644, 0)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return 0, err
	}
	return unix.Openat2(r.fd, path, &how)
}

// link makes symbolic links where there is nothing yet.
func (r *root) link(links []symlink) error {
	for _, l := range links {
		above, err := r.place(filepath.Dir(l.at), true)
		if passesOver(err) {
			continue // a link led there too
		}
		if err != nil {
			return err
		}
		err = unix.Symlinkat(l.target, above, filepath.Base(l.at))
		unix.Close(above)
		if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("making the link %q: %w", l.at, err)
		}
	}
	return nil
}

// enter makes this root that of the process, with nothing of the old one left.
func (r *root) enter() error {
	if err := unix.Chdir(scratch); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil { // the old root, which is over the new one
		return fmt.Errorf("leaving the old root: %w", err)
	}
	for _, mask := range r.masks {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(mask, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("making the root read-only: %w", err)
		}
		unix.Close(mask)
	}
	return unix.Chdir("/")
}
