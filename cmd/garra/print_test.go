// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/source"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ünïcode 漢字 🙂": "plain, ünïcode 漢字 🙂",
		"tab\tstays":          "tab\tstays",
		"\x1b[31mred\x07":     " [31mred ",
		"\u009b2J":            " 2J",
		"a\r\nb":              "a  b",
		"\u202eesrever":       " esrever",
		"\x7f\x00":            "  ",
		"\xff":                "\ufffd",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := printableLines("one\n\x1btwo"); got != "one\n   two" {
		t.Errorf("lines: %q", got)
	}
}

// Escaping changes how JSON is written, not what it says.
func TestPrintableJSON(t *testing.T) {
	for _, text := range []string{
		"plain", "\u009b2J", "\x7f", "\u202e", "\U000e0001 tag", "🙂", "tab\t and \x1b",
	} {
		written, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		got := printableJSON(string(written))
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != text || printable(got) != got {
			t.Errorf("%q: %s %q %v", text, got, back, err)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range []string{"0 files", "1 file", "2 files"} {
		if got := count(n, "file"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{usageError(errors.New("x")), 2},
		{fmt.Errorf("calling: %w", source.Fail(source.PolicyDenied, "s", "no")), 6},
		{source.Fail(source.ConfirmDenied, "s", "no"), 6},
		{source.Fail(source.ServerFailed, "s", "no"), 1},
		{&adminapi.Error{Status: http.StatusForbidden}, 6},
		{&adminapi.Error{Status: http.StatusBadGateway}, 1},
		{&exitError{exitUnparsable, errors.New("x")}, 65},
		{fmt.Errorf("asking: %w", errInterrupted), 130},
		{errTerminated, 1},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

// What an error quotes can't pass for another line of garra's.
func TestErrorsAreOneLineEach(t *testing.T) {
	var out bytes.Buffer
	c := &cobra.Command{Use: "garra"}
	explain(&out, c, errors.New("bad\x1b[2J\ngarra: all is well\n"))
	if want := "garra: bad [2J\n  garra: all is well\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
	out.Reset()
	explain(&out, c, &exitError{exitFindings, nil})
	explain(&out, c, nil)
	if out.Len() > 0 {
		t.Errorf("said %q", out.String())
	}
	explain(&out, c, usageError(errors.New("wrong")))
	if want := "garra: wrong\nsee `garra --help`\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
