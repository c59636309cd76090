// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/internal/lifecycle"
	"github.com/garraia/garra/source"
)

// A Server is one supervised stdio server. It implements source.Source,
// source.Controller and source.Logger, and is safe for concurrent use. One that
// a person starts or restarts is isolated from then on, until its entry is
// edited, whatever inherit_env says.
type Server struct {
	*lifecycle.Server
	of    *Server // whose fork it is; nil when it is none
	ring  *ring
	noise lifecycle.Tally // lines on standard output that were no messages

	running atomic.Pointer[process] // nil when there is none

	metering sync.Mutex // held while memory is measured; guards measure
	measure  measure
}

// A measure is how much memory a process used at some time.
type measure struct {
	of    *process
	time  time.Time
	bytes int64
}

// meterEvery is how old a measure of memory may be: it looks at every process of the
// server, and each list of servers asks for it.
const meterEvery = time.Second

var (
	_ source.Source     = (*Server)(nil)
	_ source.Controller = (*Server)(nil)
	_ source.Logger     = (*Server)(nil)
	_ source.Forker     = (*Server)(nil)
	_ source.Meter      = (*Server)(nil)
)

// Status implements source.Source.
func (s *Server) Status() source.Status {
	status := s.Server.Status()
	status.Noise = s.noise.Count()
	return status
}

// Logs returns what the server wrote to standard error after line seq (0 for
// all that is kept), and a channel that is closed when there is more.
func (s *Server) Logs(seq uint64) ([]source.Line, <-chan struct{}) { return s.ring.after(seq) }

// UsedMemory implements source.Meter.
func (s *Server) UsedMemory() (bytes int64, ok bool) {
	p := s.running.Load()
	if p == nil {
		return 0, false
	}
	s.metering.Lock()
	defer s.metering.Unlock()
	if last := &s.measure; last.of == p && time.Since(last.time) < meterEvery {
		return last.bytes, true
	}
	if bytes, ok = p.Used(); ok {
		s.measure = measure{p, time.Now(), bytes}
	}
	return bytes, ok
}

// noised counts a line on standard output that was no message, or none that
// garra could use.
func (s *Server) noised(message string) { s.Tell(&s.noise, source.EventNoise, message) }
