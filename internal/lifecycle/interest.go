// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"

	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// An interest is the resources of a server that clients want to hear of without a call. It
// is safe for concurrent use.
type interest struct {
	mu   sync.Mutex // guards uris
	uris map[string]bool
}

// note takes what a call that succeeded subscribes to, or no longer.
func (i *interest) note(c *source.Call) {
	if c.Method != protocol.MethodSubscribe && c.Method != protocol.MethodUnsubscribe {
		return
	}
	params, err := protocol.ParseObject(c.Params)
	if err != nil {
		return
	}
	uri, _ := protocol.Text(params.Get("uri")) // without one nothing is subscribed to
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.Method == protocol.MethodUnsubscribe {
		delete(i.uris, uri)
		return
	}
	if i.uris == nil {
		i.uris = make(map[string]bool)
	}
	i.uris[uri] = true
}

// none reports whether nobody wants to hear of anything.
func (i *interest) none() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.uris) == 0
}
