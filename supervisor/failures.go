// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// errNotDelivered is wrapped by the failure of a call that its server can't have
// got: the link was closed, or the pipe broke before the whole request was
// written. It can be made again on the next link.
var errNotDelivered = errors.New("the call did not reach the server")

// stoppedFailure is the answer to who wants a server that somebody stopped.
func stoppedFailure(server string) *source.Failure {
	return source.Fail(source.ServerStopped, server, "the server was stopped")
}

// parkedFailure is the answer to a call of a server that crashed too often.
func (s *Server) parkedFailure(now *snapshot) *source.Failure {
	if last := now.status.LastError; s.once && last != nil {
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
		Fix: "mend the cause, garra looks again every few seconds",
	}
	if last := now.status.LastError; last != nil && last.Code == source.SecretMissing {
		f.Code = source.SecretMissing
	}
	return because(f, now)
}

func disabledFailure(entry *mcpconfig.Server) *source.Failure {
	return &source.Failure{
		Code: source.ServerDisabled, Server: entry.Name,
		Message: "the server is disabled in " + entry.Position("disabled").String(),
		Fix:     "take that line out, or set it to enabled",
	}
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

// gaveUp is the failure of a call whose time ended while it waited.
func (s *Server) gaveUp(ctx Context, now *snapshot) error {
	f := source.Cancelled(ctx, s.name)
	if f.Code != source.CallTimeout {
		return f
	}
	f.Message = fmt.Sprintf("the server is in state %s and did not become ready in time", now.status.State)
	f.Fix = "see `garra mcp logs " + s.name + "`, or raise callTimeoutSecs if it only starts slowly"
	return because(f, now)
}

// buildFailure is the failure of a start whose environment can't be built. It
// names every problem of the entry.
func buildFailure(entry *mcpconfig.Server, err error) *source.Failure {
	f := &source.Failure{Code: source.ServerFailed, Server: entry.Name, Message: err.Error(), Cause: err}
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

// startOutcome tells the causes of a failed spawn apart: what the machine is
// short of may come back, what the file is won't by itself.
func startOutcome(entry *mcpconfig.Server, err error) outcome {
	passing := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ETXTBSY)
	if e, ok := errors.AsType[*sandbox.StartError](err); ok && e.Op == sandbox.OpLaunch {
		passing = true // the launcher is garra itself, and it was there before
	}
	return outcome{
		failure: &source.Failure{
			Code: source.ServerFailed, Server: entry.Name, Cause: err,
			Message: "starting the server: " + err.Error(),
		},
		permanent: !passing,
	}
}
