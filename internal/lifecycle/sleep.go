// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"

	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// A lazy server sleeps while nobody needs it: it is stopped, and the first call starts it.

// isLazy reports whether a server of that entry sleeps when it isn't needed. What a client
// holds is needed by that, and what a command starts by the command.
func (s *Server) isLazy(entry *mcpconfig.Server) bool {
	return entry.Start == mcpconfig.StartLazy && s.options.Holder == "" && !s.options.Once
}

// doze stops the server until it is needed.
func (o *owner) doze(why string) {
	o.status.Asleep = true
	o.become(source.Stopped, why)
}

// rouse starts a server that sleeps: many calls that come at once start one process.
func (o *owner) rouse() {
	if o.status.Asleep && o.status.State == source.Stopped {
		o.start()
	}
}

// watchIdle begins to look whether a ready server is still needed, if it sleeps otherwise.
func (o *owner) watchIdle() {
	if o.link != nil && o.server.isLazy(o.entry) && o.entry.IdleStop > 0 {
		o.in(o.entry.IdleStop, o.sleepIfIdle)
	} else if o.status.State == source.Ready {
		o.in(0, nil)
	}
}

// sleepIfIdle stops a server that wasn't used for as long as its entry says, and that nobody
// wants to hear of.
func (o *owner) sleepIfIdle() {
	quiet := o.link.idleFor()
	switch {
	case !o.server.interest.none():
		o.watchIdle()
	case quiet < o.entry.IdleStop:
		o.in(o.entry.IdleStop-quiet, o.sleepIfIdle)
	default:
		o.doze(fmt.Sprintf("nobody used it for %s", o.entry.IdleStop))
	}
}

// idleFor is how long no call has been in flight.
func (u *usage) idleFor() time.Duration {
	if u.calls.Load() > 0 {
		return 0
	}
	return time.Since(time.Unix(0, u.last.Load()))
}
