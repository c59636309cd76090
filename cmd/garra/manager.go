// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/source"
)

// status is how the gateway is, on one line.
func (d *daemon) status() string {
	ready, failed := 0, 0
	names := d.names()
	for _, name := range names {
		src := d.source(name)
		if src == nil {
			continue // it went meanwhile
		}
		switch src.Status().State {
		case source.Ready:
			ready++
		case source.Failed, source.Parked, source.Backoff:
			failed++
		case source.Starting, source.Stopping, source.Stopped, source.Disabled:
		}
	}
	text := fmt.Sprintf("%d of %s ready", ready, count(len(names), "server"))
	if failed > 0 {
		text += fmt.Sprintf(", %d failing", failed)
	}
	return text
}

// reportStatus tells the service manager how the gateway is, if it is otherwise than it was
// said to be, and returns what was said.
func (d *daemon) reportStatus(said string) string {
	now := d.status()
	if now != said {
		d.told(d.manager.Status(now))
	}
	return now
}

// told logs that the service manager could not be told something. That ends nothing: the
// manager has its own view of what it doesn't hear.
func (d *daemon) told(err error) {
	if err != nil {
		d.log.Warn().Err(err).Msg("the service manager does not hear this gateway")
	}
}

// reload is the engine's, of which the service manager is told.
func (d *daemon) reload(ctx context.Context) error {
	d.told(d.manager.Reloading())
	err := d.engine.reload(ctx)
	d.told(d.manager.Ready(d.status()))
	return err
}

// heartbeats come as often as the service manager's watchdog needs; never without one.
func (d *daemon) heartbeats() (beats <-chan time.Time, stop func()) {
	if d.manager.Watchdog <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(d.manager.Watchdog / 3) // two may be late
	return ticker.C, ticker.Stop
}

// beat tells the service manager that the gateway is alive, if it is: it must answer over
// its socket what commands ask it, which takes the way of every request.
func (d *daemon) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.manager.Watchdog/3)
	defer cancel()
	client, err := adminapi.Dial(ctx, d.places.Socket)
	if err == nil {
		defer client.Close()
		_, err = client.List(ctx)
	}
	if err != nil {
		d.log.Error().Err(err).Msg("the gateway does not answer itself; the service manager is not told that it lives")
		return
	}
	d.told(d.manager.Alive())
}
