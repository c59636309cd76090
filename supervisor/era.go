// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/garraia/garra/internal/eras"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// meet learns what a new process offers, in the era that its entry names. Left to
// garra it is greeted first: servers that speak both eras lose nothing by it, and
// most speak no other. One that refuses the handshake is asked without one.
func (a *attendance) meet(ctx Context) (*source.Hello, error) {
	switch a.run.Entry.Era {
	case mcpconfig.EraLegacy:
		return a.initialize(ctx)
	case mcpconfig.EraModern:
		return a.discover(ctx)
	case mcpconfig.EraAuto:
	}
	hello, err := a.initialize(ctx)
	if !isRefusal(err) {
		return hello, err
	}
	if hello, failed := a.discover(ctx); failed == nil {
		return hello, nil
	}
	return nil, err
}

// isRefusal reports whether the server answered with an error.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*protocol.Error](err)
	return ok
}

// discover asks what the server offers, in the stateless era (MCP 2026-07-28,
// server/discover).
func (a *attendance) discover(ctx Context) (*source.Hello, error) {
	result, err := a.link.call(ctx, &source.Call{
		Method: protocol.MethodDiscover, Params: eras.DiscoverParams(),
	}, a.patience())
	if err != nil {
		return nil, err
	}
	hello, err := eras.ReadDiscovery(a.run.Entry.Name, result)
	if err != nil {
		return nil, err
	}
	ear := eras.NewEar(a.link.asEarUsesIt())
	a.link.ear.Store(ear)
	ear.HearLists(hello.Capabilities)
	return hello, nil
}

// asEarUsesIt is the link as an Ear of it uses it.
func (l *link) asEarUsesIt() eras.Link {
	return eras.Link{
		Server: l.server, Life: l.life, Trouble: l.trouble, Told: l.told,
		Request: func(ctx context.Context, method string, params Raw) (Raw, error) {
			return l.call(ctx, &source.Call{Method: method, Params: params},
				budget{timeout: eras.Forever, began: time.Now()})
		},
	}
}
