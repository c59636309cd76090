// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// An Invalid is the server of an entry that has errors: it can't be started, and says
// why to whoever wants it. It is safe for concurrent use.
type Invalid struct{ *Server }

var (
	_ source.Source     = (*Invalid)(nil)
	_ source.Controller = (*Invalid)(nil)
	_ source.Logger     = (*Invalid)(nil)
)

// NewInvalid returns the server of an entry that was left out of a configuration.
func NewInvalid(entry *mcpconfig.Server, hooks source.Hooks) *Invalid {
	return &Invalid{New(entry, refusing{}, Options{Hooks: hooks})}
}

// Logs implements source.Logger. There is never anything.
func (*Invalid) Logs(uint64) ([]source.Line, <-chan struct{}) { return nil, make(chan struct{}) }

// refusing is a Runner whose runs fail at once.
type refusing struct{}

func (refusing) Run(_ Context, r *Run) Outcome {
	return Outcome{Failure: invalidFailure(r.Entry), Permanent: true}
}

func (refusing) Obstacle(_ Context, entry *mcpconfig.Server) *source.Failure {
	return invalidFailure(entry)
}

func (refusing) Edited(_, _ *mcpconfig.Server) (replace bool) { return true }

func (refusing) ByHand(entry *mcpconfig.Server) *source.Failure { return invalidFailure(entry) }

func invalidFailure(entry *mcpconfig.Server) *source.Failure {
	message, fix := entry.Invalid()
	return &source.Failure{Code: source.ServerFailed, Server: entry.Name, Message: message, Fix: fix}
}
