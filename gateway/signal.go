// SPDX-License-Identifier: Apache-2.0

package gateway

import "sync"

// A signal wakes everybody who waits for it. It is safe for concurrent use.
type signal struct {
	mu sync.Mutex    // guards ch
	ch chan struct{} // nil while nobody waits
}

func newSignal() *signal { return &signal{} }

// wait returns a channel that is closed at the next fire.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
