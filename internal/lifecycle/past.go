// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"math"
	"time"

	"github.com/garraia/garra/internal/history"
	"github.com/garraia/garra/source"
)

// Stops implements source.Historian.
func (s *Server) Stops() []source.Stop { return s.options.History.Stops(s.name) }

// failedBefore is how often the server had failed in a row when garra ended, if it has
// the same entry still. What one client held has no past.
func (s *Server) failedBefore() int {
	if s.options.Holder != "" {
		return 0
	}
	return s.options.History.Failures(s.name, s.entry.Digest())
}

// remember notes the end of a run, after the policy has heard of it; why is empty for
// one that nobody wanted.
func (o *owner) remember(out *Outcome, why string) {
	s := o.server
	record := &history.Record{Server: s.name, Stop: source.Stop{
		Time: time.Now(), Cause: source.CauseStopped, Message: why, Ending: out.Ending,
	}}
	if !out.Began.IsZero() {
		record.Uptime = math.Round(time.Since(out.Began).Seconds()*1000) / 1000
	}
	if s.options.Holder == "" {
		record.Entry, record.Failures = o.entry.Digest(), o.policy.Failures()
	}
	if why == "" {
		record.Cause, record.Message = source.CauseOf(out.Failure), out.Failure.Message
	}
	if err := s.options.History.Add(record); err != nil {
		s.Tell(&s.forgotten, source.EventWarning, "how it ended could not be written down: "+err.Error())
	}
}
