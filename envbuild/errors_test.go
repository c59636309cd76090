// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"io/fs"
	"testing"
)

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		problem Error
		want    string
	}{
		{Error{Message: "what"}, "what"},
		{Error{Message: "what", Fix: "do this"}, "what; do this"},
		{Error{Server: "s", Message: "what", Cause: errors.New("why")}, `server "s": what: why`},
		{Error{Server: "s", Field: "env.A", Message: "what"}, `server "s": env.A: what`},
		{
			Error{
				Server: "a\nb", Field: "cwd", Where: "mcp.json:3",
				Message: "what", Cause: errors.New("why"), Fix: "fix",
			},
			`server "a\nb": cwd (mcp.json:3): what: why; fix`,
		},
	} {
		if got := c.problem.Error(); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}

func TestErrorsUnwrap(t *testing.T) {
	all := Errors{
		{Kind: ErrCwd, Message: "first", Cause: fs.ErrNotExist},
		{Kind: ErrUnset, Message: "second", Subject: "VAR"},
	}
	if got := all.Error(); got != "first: file does not exist\nsecond" {
		t.Errorf("got %q", got)
	}
	for _, kind := range []error{ErrCwd, ErrUnset, fs.ErrNotExist} {
		if !errors.Is(all, kind) {
			t.Errorf("%v is not found", kind)
		}
	}
	for _, kind := range []error{ErrSecret, ErrNotFound, ErrNotExecutable, ErrEnvFile, ErrInvalid} {
		if errors.Is(all, kind) {
			t.Errorf("%v is found", kind)
		}
	}
	if first, ok := errors.AsType[*Error](error(all)); !ok || first.Message != "first" {
		t.Errorf("got %v", first)
	}
}

// TestProblemsHaveSubjects checks what a program can read from a problem.
func TestProblemsHaveSubjects(t *testing.T) {
	host, _ := bareHost(t)
	for _, c := range []struct {
		entry Entry
		want  string
	}{
		{Entry{Command: "/bin/sh", Args: []string{"${NO_VAR}"}}, "NO_VAR"},
		{Entry{Command: "/bin/sh", Env: map[string]string{"A": "vault:the.key"}}, "the.key"},
		{Entry{Command: "garra-none"}, "garra-none"},
		{Entry{Command: "/no/such/file"}, "/no/such/file"},
		{Entry{Command: "/bin"}, "/bin"},
		{Entry{Command: "/bin/sh", Cwd: "/no/such/folder"}, "/no/such/folder"},
		{Entry{Command: "/bin/sh", EnvFile: "/no/such.env"}, "/no/such.env"},
		{Entry{Command: "/bin/sh", Env: map[string]string{"A B": ""}}, "A B"},
	} {
		_, err := Build(t.Context(), c.entry, host, nil)
		if problem, ok := errors.AsType[*Error](err); !ok || problem.Subject != c.want {
			t.Errorf("got %v; want a problem with %s", err, c.want)
		}
	}
}
