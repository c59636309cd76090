// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// descriptors are what a process has open.
func descriptors(t *testing.T, pid int) (open []string) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(links) == 0 {
		t.Fatalf("process %d has nothing open: %v", pid, err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			open = append(open, target)
		}
	}
	return open
}

// inodes are files as descriptors shows them.
func inodes(t *testing.T, files []*os.File) (open []string) {
	t.Helper()
	for _, file := range files {
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, target)
	}
	return open
}
