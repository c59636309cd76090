// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/garraia/garra/source"
)

// record is the nth stop of a server.
func record(server, entry string, n int) *Record {
	return &Record{
		Server: server, Entry: entry, Failures: n,
		Stop: source.Stop{Cause: source.CauseCrashed, Message: fmt.Sprintf("stop %d", n)},
	}
}

// open opens a history, and fails the test if it can't.
func open(t *testing.T, path string) *History {
	t.Helper()
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func add(t *testing.T, h *History, r *Record) {
	t.Helper()
	if err := h.Add(r); err != nil {
		t.Fatal(err)
	}
}

// messages are those of a server's stops.
func messages(h *History, server string) string {
	var list []string
	for _, stop := range h.Stops(server) {
		list = append(list, strings.TrimPrefix(stop.Message, "stop "))
	}
	return strings.Join(list, " ")
}

func TestTheLastStopsAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h := open(t, path)
	for n := range 2*Kept + 3 {
		add(t, h, record("a", "x", n))
	}
	add(t, h, record("b", "x", 1))
	want := messages(h, "a")
	if got := len(h.Stops("a")); got != Kept || !strings.HasSuffix(want, " 42") {
		t.Errorf("%d stops: %s", got, want)
	}
	h.Close()
	again := open(t, path)
	if got := messages(again, "a"); got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
	if got := messages(again, "b"); got != "1" {
		t.Errorf("of another server: %s", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestFailuresCountForOneEntry(t *testing.T) {
	t.Parallel()
	h := New()
	add(t, h, record("a", "old", 5))
	add(t, h, record("a", "new", 3))
	add(t, h, record("a", "", 9)) // a client's own
	for entry, want := range map[string]int{"new": 3, "old": 0, "other": 0} {
		if got := h.Failures("a", entry); got != want {
			t.Errorf("entry %s: %d failures, want %d", entry, got, want)
		}
	}
	if got := h.Failures("b", "new"); got != 0 {
		t.Errorf("%d failures of a server without a past", got)
	}
}

// The file doesn't grow with the age of a gateway.
func TestTheFileStaysSmall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h := open(t, path)
	for n := range 3 * maxLines {
		add(t, h, record("a", "x", n))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > maxLines {
		t.Errorf("%d lines", lines)
	}
	if got := messages(open(t, path), "a"); got != messages(h, "a") {
		t.Errorf("%s", got)
	}
}

// Half a line, and what is none of garra's, is passed over; what stands around it isn't.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	h := open(t, path)
	add(t, h, record("a", "x", 1))
	h.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString("null\n[1]\n{}\n\x00\n" + `{"server":"a","cau`)
	if err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	again := open(t, path)
	add(t, again, record("a", "x", 2))
	if got := messages(open(t, path), "a"); got != "1 2" {
		t.Errorf("%q", got)
	}
}

// Who only shows the past changes nothing of it.
func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if h, err := Read(path); err != nil || len(h.Stops("a")) != 0 {
		t.Errorf("without a file: %v", err)
	}
	add(t, open(t, path), record("a", "x", 1))
	h, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, h, record("a", "x", 2))
	if got := messages(h, "a"); got != "1 2" {
		t.Errorf("%q", got)
	}
	if got := messages(open(t, path), "a"); got != "1" {
		t.Errorf("in the file: %q", got)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder is no history")
	}
	var none *History
	if err := none.Add(record("a", "x", 1)); err != nil || none.Stops("a") != nil || none.Failures("a", "x") != 0 {
		t.Error("the nil history remembers")
	}
	none.Close()
}
