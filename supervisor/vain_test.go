// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervisor

import (
	"testing"

	"github.com/garraia/garra/source"
)

// What is known to end the same way each time is not tried again and again.
func TestStartsInVain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		want   []string // in the message and the fix
	}{
		"npm without the package": {
			`printf 'npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/x\n' >&2; exit 1`,
			[]string{"npm has no such package", "E404", "correct the package in args"},
		},
		"npm without the version": {
			`printf 'npm ERR! code ETARGET\n' >&2; exit 1`,
			[]string{"no such version", "correct the package in args"},
		},
		"uv without the package": {
			`printf 'error: Because x was not found in the package registry\n' >&2; exit 1`,
			[]string{"uv has no such package", "correct the package in args"},
		},
		"a shell without the command": {"no-such-command-anywhere", []string{"a command in it was not found", "PATH"}},
		"a shell and what is no program": {
			"exec /etc/passwd", []string{"can't be executed", "make it executable"},
		},
		"wrong configuration": {`exit 78`, []string{"exit status 78", "correct its env and args"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.apply(map[string]fields{"s": {"command": "/bin/sh", "args": []string{"-c", test.script}}})
			now := r.state("s", source.Failed)
			contains(t, now.LastError.Error(), test.want...)
			if now.LastError.Code != source.ServerFailed || now.Restarts != 0 {
				t.Errorf("%+v", now)
			}
		})
	}
}

// The same words from a server that ran are no cause, nor is any other exit.
func TestStartsThatMayComeToSomething(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"registry out of reach": `printf 'npm error code EAI_AGAIN\n' >&2; exit 1`,
		"said and lived":        `printf 'npm error code E404\n' >&2; exit 0`,
		"plain":                 `exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.apply(map[string]fields{"s": {"command": "/bin/sh", "args": []string{"-c", script}}})
			r.state("s", source.Backoff)
		})
	}
}

// A stop of a real process is remembered with all that is known of it.
func TestStopsOfProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t, withHistory)
	s := r.only(misbehaving("--stderr-before-reply", "10"))
	_, err := s.Call(t.Context(), tool("crash", args{"code": 3}))
	failed(t, err, source.ServerCrashed)
	eventually(t, "remembered", func() bool { return len(s.Stops()) == 1 })
	stop := s.Stops()[0]
	if stop.Cause != source.CauseCrashed || stop.ExitCode == nil || *stop.ExitCode != 3 || stop.Signal != "" ||
		stop.Uptime <= 0 || stop.PeakMB == nil || len(stop.Stderr) == 0 {
		t.Errorf("%+v", stop)
	}
	contains(t, stop.Message, "exit status 3")
	r.ready("s")
	kill(t, s.Status().PID)
	eventually(t, "remembered", func() bool { return len(s.Stops()) == 2 })
	if stop = s.Stops()[1]; stop.Signal != "killed" || stop.ExitCode != nil {
		t.Errorf("%+v", stop)
	}
	notes := 0
	lines, _ := s.Logs(0)
	for _, line := range lines {
		if line.Note {
			notes++
			contains(t, line.Text, "the server ended (")
		}
	}
	if notes != 2 {
		t.Errorf("%d notes in the log", notes)
	}
}
