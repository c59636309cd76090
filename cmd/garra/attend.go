// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/garraia/garra/adminapi"
)

// attend reloads on SIGHUP and when a file changes, ends the sessions and streams of
// tokens that were revoked, tells the service manager how things are, and returns when
// ctx ends, a listener breaks, or a successor is ready, which it returns.
func (d *daemon) attend(ctx context.Context, server *adminapi.Server) (*succession, error) {
	// Nothing stops these: while the gateway ends they are of no use, and must not kill.
	hangup, succession := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	notifySuccession(succession)
	defer d.follow(ctx)()
	every := time.NewTicker(time.Second)
	defer every.Stop()
	beats, stop := d.heartbeats()
	defer stop()
	status := d.status()
	d.told(d.manager.Ready(status))
	for {
		select {
		case <-hangup:
			_ = d.reload(ctx) // it has said what is wrong
		case <-succession:
			d.startSuccessor()
		case successor := <-d.successors:
			return successor, nil
		case <-beats:
			d.beat(ctx)
		case <-every.C:
			status = d.reportStatus(status)
			whose := d.tokens.Revoked()
			d.gateway.EndSessions(whose)
			server.EndStreams(whose)
		case err := <-server.Failed():
			return nil, err
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errInterrupted) {
				return nil, context.Cause(ctx)
			}
			return nil, nil
		}
	}
}
