// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

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
