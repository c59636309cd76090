// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/garraia/garra/source"
)

// A usage is a link that knows what it is used for: how many calls are in flight,
// and when there was one last. It is safe for concurrent use.
type usage struct {
	Link
	server string
	calls  atomic.Int64
	last   atomic.Int64  // in nanoseconds of Unix time: when a call began or ended
	ends   atomic.Bool   // no call is to begin any more
	once   sync.Once     // closes quiet
	quiet  chan struct{} // closed when ends is set and no call is in flight
}

func newUsage(server string, link Link) *usage {
	u := &usage{Link: link, server: server, quiet: make(chan struct{})}
	u.last.Store(time.Now().UnixNano())
	return u
}

// Call implements Link.
func (u *usage) Call(ctx Context, c *source.Call) (Raw, error) {
	u.last.Store(time.Now().UnixNano())
	u.calls.Add(1)
	defer u.over()
	if u.ends.Load() { // either this sees that, or drain sees this call
		return nil, &Undelivered{Cause: StoppedFailure(u.server)}
	}
	return u.Link.Call(ctx, c)
}

// over is the end of a call.
func (u *usage) over() {
	u.last.Store(time.Now().UnixNano())
	if u.calls.Add(-1) == 0 && u.ends.Load() {
		u.once.Do(func() { close(u.quiet) })
	}
}

// drain returns a channel that is closed once no call is in flight. One that begins
// later is not delivered, and may be made again over the next link.
func (u *usage) drain() <-chan struct{} {
	u.ends.Store(true)
	if u.calls.Load() == 0 {
		u.once.Do(func() { close(u.quiet) })
	}
	return u.quiet
}
