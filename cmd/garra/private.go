// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// maxNesting is how many gateways may run in each other: a gateway that is a server
// of another has its uses, one that is its own has not.
const maxNesting = 3

// privateDrain is the time that calls in flight get when their server is to end, unless
// garra ends.
const privateDrain = 10 * time.Second

// private starts a gateway of the command's own, which listens nowhere; with
// only one server, when only is given. A brief one ends with what it was asked
// for.
func (g *globals) private(ctx context.Context, only string, brief bool) (*engine, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	if depth := nesting(); depth >= maxNesting {
		return nil, fmt.Errorf("garra runs inside of itself, %d deep: an entry of %s, or of a configuration that "+
			"leads there, starts garra again; take it out", depth, places.ConfigDir)
	}
	e, err := newEngine(places, quieter(g.log), purpose{
		brief: brief, drain: privateDrain, smith: g.locksmith(ctx, g.vaultOptions(places), false), redact: &g.secrets,
	})
	if err != nil {
		return nil, err
	}
	e.only = only
	e.edit = e.privately
	if err = e.load(); err != nil {
		e.close(ctx)
		return nil, err
	}
	return e, nil
}

// privately makes a configuration that of a private gateway: who runs isolated for
// the gateway that was stopped, does so here, and with only there is one server.
// That this one exists matters at first; after an edit it may be gone.
func (e *engine) privately(config *mcpconfig.Config) error {
	only := e.only
	remembered, err := readIsolated(e.places)
	if err != nil {
		return err
	}
	if only != "" {
		others := func(s *mcpconfig.Server) bool { return s.Name != only }
		config.Servers = slices.DeleteFunc(config.Servers, others)
		config.LeftOut = slices.DeleteFunc(config.LeftOut, others)
		if len(config.Servers)+len(config.LeftOut) == 0 && e.config == nil {
			return noServer(only, e.places.ConfigDir)
		}
	}
	e.isolated = remembered.impose(config)
	return nil
}

// detail is what is known of a server of a private gateway.
func (e *engine) detail(name string) (gateway.ServerDetail, bool) {
	detail, ok := e.gateway.Detail(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	mark(&detail.ServerInfo, e.isolated)
	return detail, ok
}

// noServer is the failure of a name that no entry has.
func noServer(name, folder string) error {
	return source.Fail(source.ServerUnknown, name, "there is no such server in %s", folder)
}

// quieter is the log of a gateway that a command runs for itself: what a person
// at a terminal wants to know, not the daily business.
func quieter(log zerolog.Logger) zerolog.Logger {
	if log.GetLevel() == zerolog.InfoLevel {
		return log.Level(zerolog.WarnLevel)
	}
	return log
}
