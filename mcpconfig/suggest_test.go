// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestEditDistance checks properties of the edit distance behind "did you mean".
func TestEditDistance(t *testing.T) {
	word := rapid.StringMatching(`[a-d]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		ab := editDistance(a, b)
		if ab != editDistance(b, a) || (ab == 0) != (a == b) || ab > max(len(a), len(b)) {
			t.Fatalf("the distance of %q and %q is %d", a, b, ab)
		}
		if appended := editDistance(a, a+c); appended != len(c) {
			t.Fatalf("the distance of %q and %q is %d", a, a+c, appended)
		}
	})
}

func TestNearestKey(t *testing.T) {
	var known []string
	for _, f := range fields() {
		known = append(known, f.keys()...)
	}
	for key, want := range map[string]string{
		"comand": "command", "ARGS": "args", "allowed-tools": "allowedTools", "timeoutMs": "timeout",
		"environment": "env", "memory": "memoryLimitMb", "headrs": "headers", "disable": "disabled",
		"inherit": "inheritEnv", "xyzzy": "", strings.Repeat("a", 100): "", "": "",
	} {
		if got := Nearest(key, known); got != want {
			t.Errorf("%q is near %q, want %q", key, got, want)
		}
	}
}

// What is known may be named by a stranger, who chooses how long that is.
func TestLongNamesAreNearToNothing(t *testing.T) {
	long := strings.Repeat("read_file", 1<<20)
	if got := Nearest("read_fil", []string{long, "read_file"}); got != "read_file" {
		t.Errorf("got %.20q", got)
	}
	if got := Nearest("read_fil", []string{long}); got != "" {
		t.Errorf("got %.20q", got)
	}
}
