// SPDX-License-Identifier: Apache-2.0

package envbuild

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of problem. Each [Error] that [Build] returns is one of these for
// [errors.Is].
var (
	// ErrUnset: a reference names a variable that garra's environment lacks.
	ErrUnset = errors.New("variable not set")
	// ErrSecret: a secret can't be had: there is no vault, it is locked, or it
	// doesn't hold the key; or a secret is asked for where none may stand.
	ErrSecret = errors.New("secret not available")
	// ErrNotFound: the command, or the interpreter it needs, is nowhere.
	ErrNotFound = errors.New("command not found")
	// ErrNotExecutable: the command is there, and can't be run as a program.
	ErrNotExecutable = errors.New("command not executable")
	// ErrCwd: the working directory is not there or is no folder.
	ErrCwd = errors.New("working directory not usable")
	// ErrEnvFile: the env file can't be read or is not in dotenv form.
	ErrEnvFile = errors.New("env file not usable")
	// ErrInvalid: a name or a text is none that a process could be given.
	ErrInvalid = errors.New("entry not valid")
)

// An Error is one problem of one entry, in words for the person who wrote it.
// It holds names and never a variable's value.
type Error struct {
	Kind    error  // one of the Err values of this package
	Server  string // the entry's name
	Field   string // "command", "args[2]", "env.TOKEN", "envFile.TOKEN"
	Where   string // "mcp.json:12", "/home/me/.env:3", or "" when unknown
	Subject string // the variable, secret, file or folder that it is about
	Message string // what happened
	Fix     string // what to do next
	Cause   error  // may be nil
}

// Error implements error: which server, where, what happened, what to do.
func (e *Error) Error() string {
	var text strings.Builder
	if e.Server != "" {
		fmt.Fprintf(&text, "server %q: ", e.Server)
	}
	if e.Field != "" {
		text.WriteString(e.Field)
		if e.Where != "" {
			text.WriteString(" (" + e.Where + ")")
		}
		text.WriteString(": ")
	}
	text.WriteString(e.Message)
	if e.Cause != nil {
		text.WriteString(": " + e.Cause.Error())
	}
	if e.Fix != "" {
		text.WriteString("; " + e.Fix)
	}
	return text.String()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// Errors are all problems of one entry, in the order in which they were met:
// environment, working directory, arguments, command.
type Errors []*Error

// Error implements error: one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, problem := range e {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, problem := range e {
		all[i] = problem
	}
	return all
}
