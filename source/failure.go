// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/garraia/garra/protocol"
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
	ServerBusy     Code = "server.busy"
	CallTimeout    Code = "call.timeout"
	CallInvalid    Code = "call.invalid"
	FrameTooLarge  Code = "frame.too_large"
	SecretBlocked  Code = "secret.blocked"
	GatewayAway    Code = "gateway.away"
	GatewayEnded   Code = "gateway.ended"
	CallCancelled  Code = "call.cancelled"
)

// A Failure is why a source could not do what was asked, in words for a person.
type Failure struct {
	Code    Code
	Server  string
	Message string // what happened
	Fix     string // what to do next
	Cause   error  // may be nil
	Reason  Reason // empty unless it is one of those that programs look for
}

// A Reason tells why a server ended where the words of a Failure are not enough.
type Reason string

// The reasons.
const (
	ReasonMemory Reason = "memory" // it used more memory than it may, or could get no more
	ReasonWedged Reason = "wedged" // its process lived, and answered nothing any more
)

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

// Cancelled is the failure of a call whose context ended: its time is over, or its
// client doesn't want it any more.
func Cancelled(ctx context.Context, server string) *Failure {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return Fail(CallTimeout, server, "the call got no answer in time")
	}
	return &Failure{
		Code: CallCancelled, Server: server, Message: "the call was cancelled", Cause: context.Cause(ctx),
	}
}

// CancelReason is what the client gave as its reason to cancel, empty when none.
func CancelReason(ctx context.Context) string {
	if c, ok := errors.AsType[*CancelError](context.Cause(ctx)); ok {
		return c.Reason
	}
	return ""
}

// AsProtocolError makes an answer to a server of whatever went wrong.
func AsProtocolError(err error) *protocol.Error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return protocol.Errorf(protocol.CodeInternal, "%s", f.Message)
	}
	return protocol.Errorf(protocol.CodeInternal, "%v", err)
}
