// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"sync"
	"time"
)

// clientStep is how many bytes are written to a client in one go: no more than one
// that reads slowly can take in a while.
const clientStep = 1 << 20

// A clientOut is the way from a bridge to its client. It is safe for concurrent use.
type clientOut struct {
	out io.Writer

	writing sync.Mutex // held while a frame is written, whole

	mu    sync.Mutex // guards since; not held while something is written
	since time.Time  // when what is being written was begun; zero while nothing is
}

func newClientOut(out io.Writer) *clientOut { return &clientOut{out: out} }

// write writes one frame. It waits for a client that doesn't read.
func (c *clientOut) write(frame []byte) {
	c.writing.Lock()
	defer c.writing.Unlock()
	defer c.begin(time.Time{})
	for rest := append(frame, '\n'); len(rest) > 0; {
		step := rest[:min(len(rest), clientStep)]
		rest = rest[len(step):]
		c.begin(time.Now())
		if _, err := c.out.Write(step); err != nil {
			return // who started the bridge ends it when its client is gone
		}
	}
}

func (c *clientOut) begin(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = at
}

// unreadFor reports whether the client has read nothing for that long, although
// there was something to read.
func (c *clientOut) unreadFor(limit time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.since.IsZero() && time.Since(c.since) > limit
}
