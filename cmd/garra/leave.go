// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/garraia/garra/adminapi"
)

// stopBudget bounds the end of a gateway, once calls in flight have had their time.
const stopBudget = 20 * time.Second

// leave ends a gateway that serves: what runs is waited for; what is new is refused, or is
// the successor's.
func (d *daemon) leave(server *adminapi.Server, successor *succession) {
	again, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if successor == nil {
		d.stopServing(server)
		d.drain(again, d.gateway.Drain)
		stop() // a third signal kills
		ctx, cancel := context.WithTimeout(context.Background(), stopBudget)
		defer cancel()
		server.Shutdown(ctx)
		d.close(ctx)
		os.Remove(runFilePath(d.places))
		return
	}
	d.makeRoom(server, successor)
	d.drain(again, d.gateway.HandOver)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(again), stopBudget)
	defer cancel()
	d.close(ctx)
	kept, cancel := context.WithTimeout(again, d.options.drainTime())
	defer cancel()
	server.Linger(kept)
	stop()
	server.Shutdown(ctx)
}

// stopServing has nobody come in any more. That a gateway is there, the lock still says,
// and run.json.
func (d *daemon) stopServing(server *adminapi.Server) {
	d.loaded.Store(false)
	d.told(d.manager.Stopping(d.options.drainTime() + stopBudget))
	d.log.Info().Int("drain_secs", d.options.drain).Msg("stopping")
	server.StopListening()
	os.Remove(d.places.Socket)
	d.unlend()
}

// makeRoom lets the successor be the one who is there. From now on nothing in the run
// folder is this gateway's.
func (d *daemon) makeRoom(server *adminapi.Server, s *succession) {
	d.log.Info().Int("successor", s.giving.Request.PID).Int("drain_secs", d.options.drain).Msg("handing over")
	d.told(d.manager.MainProcess(s.giving.Request.PID))
	server.HandOver()
	s.giving.Done()
	close(s.over)
}

// drain waits until sessions have ended in one of the ways that the gateway has, but not
// past ctx and not for longer than was asked for. What is left then is cut off, and told.
func (d *daemon) drain(ctx context.Context, part func(context.Context) (busy int)) {
	ctx, cancel := context.WithTimeout(ctx, d.options.drainTime())
	defer cancel()
	if busy := part(ctx); busy > 0 {
		d.log.Warn().Int("sessions", busy).Msg("calls in flight are cut off")
	}
	d.gateway.EndSessions(func(string) bool { return true })
}

// drainTime is how long calls in flight are waited for.
func (o *serveOptions) drainTime() time.Duration { return time.Duration(o.drain) * time.Second }
