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
// ctx ends or a listener breaks.
func (d *daemon) attend(ctx context.Context, server *adminapi.Server) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
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
		case <-beats:
			d.beat(ctx)
		case <-every.C:
			status = d.reportStatus(status)
			whose := d.tokens.Revoked()
			d.gateway.EndSessions(whose)
			server.EndStreams(whose)
		case err := <-server.Failed():
			return err
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errInterrupted) {
				return context.Cause(ctx)
			}
			return nil
		}
	}
}
