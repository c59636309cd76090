// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// StoppedFailure is the answer to who wants a server that somebody stopped.
func StoppedFailure(server string) *source.Failure {
	return source.Fail(source.ServerStopped, server, "the server was stopped")
}

// Redacted returns a failure without secrets in its message. Others may be reading the
// failure itself, which stays as it is; nil is none.
func Redacted(f *source.Failure, redact func(text string) string) *source.Failure {
	if f == nil {
		return nil
	}
	shown := *f
	shown.Message = redact(shown.Message)
	return &shown
}

func disabledFailure(entry *mcpconfig.Server) *source.Failure {
	return &source.Failure{
		Code: source.ServerDisabled, Server: entry.Name,
		Message: "the server is disabled in " + entry.Position("disabled").String(),
		Fix:     "enable it with `garra mcp enable " + entry.Name + "`",
	}
}

// parkedFailure is the answer to a call of a server that failed too often.
func (s *Server) parkedFailure(now *snapshot) *source.Failure {
	if last := now.status.LastError; s.options.Once && last != nil {
		return last
	}
	f := &source.Failure{
		Code: source.ServerParked, Server: s.name,
		Message: "the server failed too often and is parked", Fix: "start it with `garra mcp restart " + s.name + "`",
	}
	if now.entry.MaxRestarts == 0 {
		f.Message = "the server failed and is not started again by itself (maxRestarts is 0)"
	}
	if !now.status.NextTry.IsZero() {
		f.Message += fmt.Sprintf(" until %s", now.status.NextTry.Format(time.TimeOnly))
	}
	return because(f, now)
}

// failedFailure is the answer to a call of a server that can't be started.
func failedFailure(server string, now *snapshot) *source.Failure {
	f := &source.Failure{
		Code: source.ServerFailed, Server: server, Message: "the server can't be started",
		Fix: "mend the cause, garra looks again from time to time",
	}
	if last := now.status.LastError; last != nil && last.Code == source.SecretMissing {
		f.Code = source.SecretMissing
	}
	return because(f, now)
}

// tooEarly is the answer to a call whose time ends before the server is tried
// again.
func (s *Server) tooEarly(now *snapshot) *source.Failure {
	next := now.status.NextTry.Format(time.TimeOnly)
	return because(&source.Failure{
		Code: source.CallTimeout, Server: s.name,
		Message: fmt.Sprintf("the server failed and is tried again at %s, which is later than the call can wait", next),
		Fix:     "call again after that, or start it now with `garra mcp restart " + s.name + "`",
	}, now)
}

// gaveUp is the failure of a call whose time ended while it waited.
func (s *Server) gaveUp(ctx Context, now *snapshot) *source.Failure {
	f := source.Cancelled(ctx, s.name)
	if f.Code != source.CallTimeout {
		return f
	}
	f.Message = fmt.Sprintf("the server is in state %s and did not become ready in time", now.status.State)
	f.Fix = "see `garra mcp inspect " + s.name + "`, or raise " + tooShort(now) + " if it only starts slowly"
	return because(f, now)
}

// tooShort is the field whose time was too short for who waited: that of the call,
// when the server had much of its own left.
func tooShort(now *snapshot) string {
	last, status := now.status.LastError, &now.status
	spent := time.Since(status.Since)
	if (last == nil || last.Code != source.CallTimeout) && status.State == source.Starting &&
		spent < now.entry.Timeout*3/4 {
		return "callTimeoutSecs"
	}
	return "timeoutSecs"
}

// because adds what went wrong last. The last failure knows best how to mend a
// server that can't be started.
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

// EntryFailure is the failure of a start that came to nothing because of what its
// entry says, such as an *envbuild.Error or several. It names each with its place.
func EntryFailure(server string, err error) *source.Failure {
	f := &source.Failure{Code: source.ServerFailed, Server: server, Message: err.Error(), Cause: err}
	if errors.Is(err, envbuild.ErrSecret) {
		f.Code = source.SecretMissing
	}
	problems, ok := errors.AsType[envbuild.Errors](err)
	if !ok || len(problems) == 0 {
		return f
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
