// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// What the machine is short of may come back, what the file is won't.
func TestStartOutcome(t *testing.T) {
	t.Parallel()
	at := func(op string, err error) error { return &sandbox.StartError{Op: op, Path: "/x", Err: err} }
	for _, test := range []struct {
		err       error
		permanent bool
	}{
		{at(sandbox.OpExec, syscall.ENOENT), true},
		{at(sandbox.OpExec, syscall.EACCES), true},
		{at(sandbox.OpExec, syscall.ENOEXEC), true},
		{at(sandbox.OpExec, syscall.E2BIG), true},
		{at(sandbox.OpInterpreter, syscall.ENOENT), true},
		{at(sandbox.OpChdir, syscall.ENOENT), true},
		{at(sandbox.OpExec, syscall.EAGAIN), false},
		{at(sandbox.OpExec, syscall.ENOMEM), false},
		{at(sandbox.OpExec, syscall.ETXTBSY), false},
		{at(sandbox.OpLaunch, errors.New("the launcher ended without an answer")), false},
		{at(sandbox.OpLaunch, syscall.EPERM), false},
		{fmt.Errorf("making a pipe: %w", syscall.EMFILE), false},
		{fmt.Errorf("making a pipe: %w", syscall.ENFILE), false},
	} {
		out := startOutcome(entryNamed("s"), test.err)
		if out.Permanent != test.permanent {
			t.Errorf("%v: permanent %v", test.err, out.Permanent)
		}
		f := failed(t, out.Failure, source.ServerFailed)
		contains(t, f.Message, test.err.Error())
		if !errors.Is(f, test.err) {
			t.Errorf("%v: the cause is lost", test.err)
		}
	}
}

// Each thing is said once.
func TestFailureTexts(t *testing.T) {
	t.Parallel()
	one := &envbuild.Error{
		Kind: envbuild.ErrUnset, Server: "s", Field: "env.A", Where: "mcp.json:3",
		Message: "variable X is not set", Fix: "set X",
	}
	two := &envbuild.Error{
		Kind: envbuild.ErrSecret, Server: "s", Field: "env.B", Where: "mcp.json:4",
		Message: "secret Y is not available", Fix: "store Y",
	}
	for name, test := range map[string]struct {
		err  error
		code source.Code
		want string
	}{
		"one problem": {
			envbuild.Errors{one},
			source.ServerFailed,
			`server "s": env.A (mcp.json:3): variable X is not set; set X`,
		},
		"two problems": {
			envbuild.Errors{one, two},
			source.SecretMissing,
			`server "s": env.A (mcp.json:3): variable X is not set; set X; and ` +
				`env.B (mcp.json:4): secret Y is not available; store Y`,
		},
		"something else": {
			errors.New("disk on fire"), source.ServerFailed, `server "s": disk on fire`,
		},
	} {
		f := buildFailure(entryNamed("s"), test.err)
		if f.Code != test.code || f.Error() != test.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", name, f.Code, f, test.want)
		}
		if !errors.Is(f, test.err) && !errors.As(f, new(envbuild.Errors)) {
			t.Errorf("%s: the cause is lost", name)
		}
	}
}
