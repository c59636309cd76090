// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A mishap is why a message, or a whole run, came to nothing.
type mishap struct {
	failure   *source.Failure
	status    int  // of the HTTP answer; 0 when there was none
	answer    Raw  // to the request, that came with this status; nil when there was none
	unsent    bool // the message had certainly no effect
	ends      bool // the link is of no more use
	lasting   bool // with ends: trying again can't mend it
	forgotten bool // with ends: the server doesn't know the session
	doubtful  bool // the server may be gone: look
}

// Error implements error.
func (m *mishap) Error() string { return m.failure.Error() }

// Unwrap returns the failure.
func (m *mishap) Unwrap() error { return m.failure }

// An undelivered is the error of a call that can be made again, since it had
// certainly no effect.
type undelivered struct {
	failure   error
	forgotten bool  // the server didn't know the session
	link      *link // that lost the call
}

// Error implements error.
func (u *undelivered) Error() string {
	return "the call did not reach the server: " + u.failure.Error()
}

// Unwrap returns the failure.
func (u *undelivered) Unwrap() error { return u.failure }

// stoppedFailure is the answer to who wants a server that somebody stopped.
func stoppedFailure(server string) *source.Failure {
	return source.Fail(source.ServerStopped, server, "the server was stopped")
}

// parkedFailure is the answer to a call of a server that failed too often.
func parkedFailure(server string, now *snapshot) *source.Failure {
	f := &source.Failure{
		Code: source.ServerParked, Server: server,
		Message: "the server failed and is parked", Fix: "start it with `garra mcp restart " + server + "`",
	}
	if !now.status.NextTry.IsZero() {
		f.Message += fmt.Sprintf(" until %s", now.status.NextTry.Format(time.TimeOnly))
	}
	return because(f, now)
}

// failedFailure is the answer to a call of a server that can't be used.
func failedFailure(server string, now *snapshot) *source.Failure {
	f := &source.Failure{
		Code: source.ServerFailed, Server: server, Message: "the server can't be used",
		Fix: "mend the cause, garra looks again from time to time",
	}
	if last := now.status.LastError; last != nil && last.Code == source.SecretMissing {
		f.Code = source.SecretMissing
	}
	return because(f, now)
}

func disabledFailure(entry *mcpconfig.Server) *source.Failure {
	return &source.Failure{
		Code: source.ServerDisabled, Server: entry.Name,
		Message: "the server is disabled in " + entry.Origin.String(),
		Fix:     "take that line out, or set it to enabled",
	}
}

// because adds what went wrong last. The last failure knows best how to mend a
// server that can't be used.
func because(f *source.Failure, now *snapshot) *source.Failure {
	last := now.status.LastError
	if last == nil {
		return f
	}
	f.Message += ": " + last.Message
	f.Cause = last
	if last.Fix != "" && (last.Code == source.SecretMissing || f.Code == source.ServerFailed) {
		f.Fix = last.Fix
	}
	return f
}

// gaveUp is the failure of a call whose time ended while it waited.
func (s *Server) gaveUp(ctx Context, now *snapshot) error {
	f := source.Cancelled(ctx, s.name)
	if f.Code != source.CallTimeout {
		return f
	}
	f.Message = fmt.Sprintf("the server is %s and did not become ready in time", now.status.State)
	return because(f, now)
}

// referenceFailure is the failure of references that can't be resolved. It
// names every one, with its file and field.
func referenceFailure(server string, problems envbuild.Errors) *source.Failure {
	f := &source.Failure{Code: source.ServerFailed, Server: server, Cause: problems}
	if errors.Is(problems, envbuild.ErrSecret) {
		f.Code = source.SecretMissing
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		bare := *problem
		bare.Server = "" // the failure names it
		if len(problems) == 1 {
			f.Fix, bare.Fix = bare.Fix, ""
		}
		texts[i] = bare.Error()
	}
	f.Message = strings.Join(texts, "; and ")
	return f
}
