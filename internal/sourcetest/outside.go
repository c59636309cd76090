// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Outside returns which process, by its id here, a server knows by an id of its own: in a
// namespace of processes they differ (pid_namespaces(7)).
func Outside(t testing.TB, server, inside int) int {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return inside // there are no namespaces here
	}
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", server))
	if err != nil {
		t.Fatalf("finding the processes of server %d: %v", server, err)
	}
	if theirs == own {
		return inside
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		status, _ := os.ReadFile(folder + "/status") // an error: it is gone
		_, after, _ := strings.Cut(string(status), "\nNSpid:")
		line, _, _ := strings.Cut(after, "\n")
		ids := strings.Fields(line)
		if !slices.Contains(ids[min(1, len(ids)):], strconv.Itoa(inside)) {
			continue
		}
		if ns, _ := os.Readlink(folder + "/ns/pid"); ns == theirs {
			pid, _ := strconv.Atoi(ids[0])
			return pid
		}
	}
	t.Fatalf("server %d has no process that it knows as %d", server, inside)
	return 0
}

// Writing returns the fields with the folders of some files open to the server.
func (f Fields) Writing(files ...string) Fields {
	folders := make([]string, len(files))
	for i, file := range files {
		folders[i] = filepath.Dir(file)
	}
	sandbox := map[string]any{"write": folders}
	if before, ok := f["sandbox"].(map[string]any); ok {
		maps.Copy(sandbox, before)
	}
	return f.With("sandbox", sandbox)
}
