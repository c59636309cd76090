// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestStartErrorNamesWhatFailed(t *testing.T) {
	for _, test := range []struct {
		err  StartError
		want string
	}{
		{StartError{OpExec, "a\nb", syscall.ENOENT}, `executing "a\nb": no such file or directory`},
		{StartError{OpChdir, "/d", syscall.ENOTDIR}, `entering directory "/d": not a directory`},
		{
			StartError{OpInterpreter, "/s", syscall.ENOENT},
			`executing "/s": the file exists, but its interpreter doesn't: no such file or directory`,
		},
		{StartError{OpLaunch, "", syscall.EAGAIN}, "starting the launcher: resource temporarily unavailable"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	if err := error(&StartError{OpExec, "x", syscall.ENOENT}); !errors.Is(err, fs.ErrNotExist) {
		t.Error("ENOENT is not fs.ErrNotExist")
	}
}

func TestStartRefusesWhatCannotBeExecuted(t *testing.T) {
	for name, spec := range map[string]Spec{
		"empty path":       {},
		"zero in path":     {Path: "/bin/tr\x00ue"},
		"zero in argument": {Path: "/bin/true", Args: []string{"true", "sec\x00ret"}},
		"zero in env":      {Path: "/bin/true", Env: []string{"TOKEN=sec\x00ret"}},
		"zero in dir":      {Path: "/bin/true", Dir: "/\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(spec, Stdio{})
			if p != nil || err == nil {
				t.Fatalf("got %v, %v; want an error", p, err)
			}
			start, ok := errors.AsType[*StartError](err)
			if !ok || start.Op != OpExec {
				t.Errorf("got %#v; want a StartError of OpExec", err)
			}
			if strings.Contains(err.Error(), "sec") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

func TestExitSaysItAsAShellDoes(t *testing.T) {
	for _, test := range []struct {
		exit Exit
		want string
	}{
		{Exit{}, "exit status 0"},
		{Exit{Code: 3}, "exit status 3"},
		{Exit{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
		{Exit{Code: -1, Lost: true}, "killed together with its launcher"},
	} {
		if got := test.exit.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
