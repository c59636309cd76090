// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTableOnAPipe(t *testing.T) {
	var out bytes.Buffer
	g := &globals{streams: streams{out: &out}}
	list := g.table("NAME", "TEXT")
	list.row("one", string(bytes.Repeat([]byte("x"), 100)))
	list.row("two\tcells\n", "\x1b")
	if err := list.flush(); err != nil {
		t.Fatal(err)
	}
	want := "one\t" + string(bytes.Repeat([]byte("x"), 100)) + "\ntwo cells \t \n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
	list = (&globals{streams: streams{out: brokenPipe{}}}).table()
	list.row("x")
	if err := list.flush(); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// A brokenPipe is a stream whose reader is gone.
type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

// onScreen is what a terminal gets of a table that is so wide.
func onScreen(t *testing.T, table *table) string {
	t.Helper()
	var out bytes.Buffer
	table.out, table.terminal = &out, true
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTableFitsItsTerminal(t *testing.T) {
	for width, want := range map[int]string{
		0: "" +
			"NAME                                      STATE   LAST ERROR\n" +
			"a-name-that-is-written-…is-the-end-of-it  failed  " + strings.Repeat("x", 79) + "…\n" +
			"b                                         ready\n",
		200: "" +
			"NAME                                      STATE   LAST ERROR\n" +
			"a-name-that-is-written-…is-the-end-of-it  failed  " + strings.Repeat("x", 100) + "\n" +
			"b                                         ready\n",
		40: "" +
			"NAME             STATE   LAST ERROR\n" +
			"a-name-t…-of-it  failed  xxxxxxxxxxxxxx…\n" +
			"b                ready\n",
		15: "" +
			"NAME  STA…  LA…\n" +
			"a-n…  fai…  xx…\n" +
			"b     rea…\n",
		3: "" +
			"NA…  ST…  LA…\n" +
			"a-…  fa…  xx…\n" +
			"b    re…\n",
	} {
		list := &table{width: width}
		list.row("NAME", "STATE", "LAST ERROR")
		list.row("a-name-that-is-written-by-a-machine-and-this-is-the-end-of-it", "failed", strings.Repeat("x", 100))
		list.row("b", "ready", "")
		got := onScreen(t, list)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns:\n%s", width, diff)
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(line) - 1; width >= 15 && n > width {
				t.Errorf("%d columns: %d are used", width, n)
			}
		}
	}
	if got := onScreen(t, &table{width: 80}); got != "" {
		t.Errorf("a table without rows is %q", got)
	}
}

func TestPairsAreWhole(t *testing.T) {
	for width, want := range map[int]string{
		0:  "name  one two three four five six\nrun   /a/very/long/path/to/a/socket\n",
		30: "name  one two three four five\n      six\nrun   /a/very/long/path/to/a/socket\n",
		10: "name  one two three four five six\nrun   /a/very/long/path/to/a/socket\n",
	} {
		list := &table{width: width, whole: true}
		list.row("name", "one two three four five six")
		list.row("run", "/a/very/long/path/to/a/socket")
		if diff := cmp.Diff(want, onScreen(t, list)); diff != "" {
			t.Errorf("%d columns:\n%s", width, diff)
		}
	}
}
