// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync/atomic"
	"time"

	"github.com/garraia/garra/source"
)

// MaxTold is how many of one server's oddities of a kind become events; the
// others are only counted.
const MaxTold = 20

// A Tally counts what is worth an event as long as it is rare.
type Tally struct{ n atomic.Int64 }

// Count is how much was counted.
func (t *Tally) Count() int { return int(t.n.Load()) }

// Trouble counts a message that the server didn't take, or asked in vain.
func (s *Server) Trouble(message string) { s.Tell(&s.trouble, source.EventWarning, message) }

// Tell counts an oddity of the server, and makes an event of the first ones of a
// tally.
func (s *Server) Tell(t *Tally, kind source.EventKind, message string) {
	n := t.n.Add(1)
	if n > MaxTold || s.options.Hooks.Event == nil {
		return
	}
	if n == MaxTold {
		message += " (more of these are counted, not told)"
	}
	now := s.Status()
	s.options.Hooks.Event(source.Event{
		Time: time.Now(), Origin: s.Origin(), Kind: kind, State: now.State, PID: now.PID, Message: message,
	})
}
