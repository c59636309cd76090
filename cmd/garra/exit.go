// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/source"
)

// The exit codes, as the documentation lists them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitFindings    = 2 // a check found errors, or the command line is wrong
	exitLocked      = 4 // the vault is locked, or the passphrase is wrong
	exitRefused     = 6
	exitUnparsable  = 65
	exitInterrupted = 130
)

// An exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error // nil when everything has been said already
}

// Error implements error.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// usageError is for a command line that is wrong.
func usageError(err error) error { return &exitError{exitFindings, err} }

// exitCode maps whatever a command returned to the exit code, and is the one
// place that does.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	if f, ok := errors.AsType[*source.Failure](err); ok && refused(f.Code) {
		return exitRefused
	}
	if e, ok := errors.AsType[*adminapi.Error](err); ok && e.Status == http.StatusForbidden {
		return exitRefused
	}
	return exitFailed
}

// refused reports whether a code means that policy said no.
func refused(code source.Code) bool {
	return code == source.PolicyDenied || code == source.ConfirmDenied
}

// errInterrupted is the cause of a command's context after SIGINT.
var errInterrupted = errors.New("interrupted")
