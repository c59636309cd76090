// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"net/http"
	"time"
)

// stand keeps the standing stream open, over which the server tells and asks
// what concerns no call. A server need not have one.
func (s *streamable) stand() {
	ctx := s.inlet.alive()
	p := newPosition(s.limits)
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			pause(ctx, p.delay())
		}
		began := time.Now()
		res, m := s.listen(ctx, p.last)
		if m != nil {
			if ctx.Err() != nil || !s.standAgain(m, first, p) {
				return
			}
			continue
		}
		_ = s.read(res.Body, p, nil) // however it ended, it is opened again
		_ = res.Body.Close()
		if time.Since(began) >= s.limits.stable {
			p.vain = 0
		}
	}
}

// standAgain decides whether a standing stream that could not be opened is tried
// again. Whether the server is still there, and knows the session, is found out
// by a ping: many answer GET with whatever status when they have no such stream.
func (s *streamable) standAgain(m *mishap, first bool, p *position) bool {
	passing := m.status == 0 || m.status >= 500 || m.status == http.StatusTooManyRequests
	switch {
	case m.status == http.StatusMethodNotAllowed:
		return false
	case passing:
		s.inlet.check()
		return true
	case first:
		if m.status == http.StatusNotFound { // no such stream, or no such session any more
			s.inlet.check()
		}
		return false
	}
	s.inlet.check()
	if p.last == "" {
		s.inlet.oddity(fmt.Sprintf("the stream of notifications can't be opened again: %s", m.failure.Message))
		return false
	}
	p.last = "" // it may be the event that the server doesn't know
	return true
}
