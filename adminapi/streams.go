// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"context"
	"net/http"
	"sync"
)

// streams are the event streams that are open. They go on for as long as their
// clients want, and so have to be ended: all with the server, which they would
// hold up, and a caller's when its token is revoked.
type streams struct {
	life context.Context // the server's

	mu   sync.Mutex // guards open
	last int
	open map[int]openStream // by number
}

// An openStream is one of them.
type openStream struct {
	principal string
	end       context.CancelFunc
}

func newStreams(life context.Context) *streams {
	return &streams{life: life, open: make(map[int]openStream)}
}

// track makes a handler one of a stream.
func (s *streams) track(
	h func(http.ResponseWriter, *http.Request) error,
) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.life, cancel)()
		defer s.add(openStream{principal(r), cancel})()
		return h(w, r.WithContext(ctx))
	}
}

// add notes a stream, and returns how to forget it.
func (s *streams) add(stream openStream) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	number := s.last
	s.open[number] = stream
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, number)
	}
}

// end ends the streams of some callers.
func (s *streams) end(whose func(principal string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range s.open {
		if whose(stream.principal) {
			stream.end()
		}
	}
}
