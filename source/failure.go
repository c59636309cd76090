// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
)

// A Code tells the kinds of failure apart. Codes are stable.
type Code string

// The codes. All but CallCancelled, which is answered with nothing, may reach MCP
// clients.
const (
	PolicyDenied   Code = "policy.denied"
	ConfirmDenied  Code = "confirm.denied"
	SecretMissing  Code = "secret.missing"
	ServerParked   Code = "server.parked"
	ServerFailed   Code = "server.failed"
	ServerCrashed  Code = "server.crashed"
	ServerStopped  Code = "server.stopped"
	ServerDisabled Code = "server.disabled"
	ServerUnknown  Code = "server.unknown"
	CallTimeout    Code = "call.timeout"
	FrameTooLarge  Code = "frame.too_large"
	CallCancelled  Code = "call.cancelled"
)

// A Failure is why a source could not do what was asked, in words for a person.
type Failure struct {
	Code    Code
	Server  string
	Message string // what happened
	Fix     string // what to do next
	Cause   error  // may be nil
}

// Fail returns a Failure without a fix.
func Fail(code Code, server, format string, args ...any) *Failure {
	return &Failure{Code: code, Server: server, Message: fmt.Sprintf(format, args...)}
}

// Error implements error: the server, what happened and what to do.
func (f *Failure) Error() string {
	text := f.Message
	if f.Server != "" {
		text = fmt.Sprintf("server %q: %s", f.Server, f.Message)
	}
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// AsFailure returns the Failure in err's chain, or makes one of the given code.
func AsFailure(err error, code Code, server string) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Code: code, Server: server, Message: err.Error(), Cause: err}
}

// A CancelError is the cause of a context that ends because the client no
// longer wants the call.
type CancelError struct{ Reason string } // as the client gave it; may be empty

// Error implements error.
func (e *CancelError) Error() string {
	if e.Reason == "" {
		return "cancelled by the client"
	}
	return "cancelled by the client: " + e.Reason
}
