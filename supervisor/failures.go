// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"syscall"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/sandbox"
	"github.com/garraia/garra/source"
)

// startOutcome tells the causes of a failed spawn apart: what the machine is
// short of may come back, what the file is won't by itself.
func startOutcome(entry *mcpconfig.Server, err error) lifecycle.Outcome {
	passing := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ETXTBSY)
	if e, ok := errors.AsType[*sandbox.StartError](err); ok && e.Op != sandbox.OpChdir && e.Op != sandbox.OpExec &&
		e.Op != sandbox.OpInterpreter {
		passing = true // the launcher is garra itself, and it was there before; so were limits and confinement
	}
	return lifecycle.Outcome{
		Failure: &source.Failure{
			Code: source.ServerFailed, Server: entry.Name, Cause: err,
			Message: "starting the server: " + err.Error(),
		},
		Permanent: !passing,
	}
}
