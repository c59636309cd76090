// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const megabyte = 1 << 20

// hogs are the ways to use memory: each takes so many bytes and keeps them.
func hogs() map[string]func(bytes int) error {
	return map[string]func(bytes int) error{
		"private": func(n int) error { return takeMapped(n, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS) },
		"shared":  func(n int) error { return takeMapped(n, unix.MAP_SHARED|unix.MAP_ANONYMOUS) },
		"file":    takeFile,
		"forks":   takeForks,
		"slow":    takeSlowly,
	}
}

// takeMapped maps memory and touches every page.
func takeMapped(n, flags int) error {
	block, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return err
	}
	touch(block)
	return nil
}

func touch(block []byte) {
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
}

// takeFile maps a file that is in memory and has no name.
func takeFile(n int) error {
	fd, err := unix.MemfdCreate("hog", 0)
	if err != nil {
		return err
	}
	if err := unix.Ftruncate(fd, int64(n)); err != nil {
		return err
	}
	block, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	touch(block)
	return nil
}

// takeSlowly takes what is shared, of which RLIMIT_DATA knows nothing, at 100 MB a second
// at most.
func takeSlowly(n int) error {
	<-time.After(time.Duration(n) * time.Second / (100 * megabyte))
	return takeMapped(n, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
}

// takeForks lets a child take it, and waits until it has.
func takeForks(n int) error {
	child := exec.Command("/proc/self/exe") // it lives as long as its parent's tree
	child.Args = []string{roleName, "hog", "private", strconv.Itoa(n), "1"}
	child.Stdin = os.Stdin
	said, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	_, err = io.ReadFull(said, make([]byte, 1))
	return err
}

// hog takes args[1] bytes args[2] times in the way of args[0], says when it is done,
// and stays.
func hog(args []string) error {
	size, _ := strconv.Atoi(args[1])
	times, _ := strconv.Atoi(args[2])
	for range times {
		if err := hogs()[args[0]](size); err != nil {
			return fmt.Errorf("taking memory: %w", err)
		}
	}
	fmt.Println("taken")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// hostHog hosts a hog under a limit of args[0] bytes, and says how it ended.
func hostHog(args []string) error {
	limit, _ := strconv.ParseInt(args[0], 10, 64)
	p, err := Start(Spec{
		Path: "/proc/self/exe", Args: append([]string{roleName, "hog"}, args[1:]...), Limits: Limits{Memory: limit},
	}, Stdio{Stdin: os.Stdin, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	fmt.Println(p.Enforcement().Memory)
	<-p.Gone()
	fmt.Println(p.Exit().Over, p.Exit().Peak)
	return nil
}
