// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// A Refusal is a connection, or a question for a name, that the policy didn't let a
// server have.
type Refusal struct {
	Host string `json:"host"` // its name, where the server asked for one; else the address
	Port uint16 `json:"port"` // 0 for a question
	Why  string `json:"why"`
	// More is how many others were refused since the last that was told of.
	More int `json:"more,omitempty"`
}

// String says it for people. The host is what the server chose, and is quoted.
func (r Refusal) String() string {
	text := fmt.Sprintf("it asked for the name %q", r.Host)
	if r.Port != 0 {
		text = fmt.Sprintf("it wanted to connect to %q", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))))
	}
	text += ", which was refused: " + r.Why
	if r.More > 0 {
		text += fmt.Sprintf(" (and %d more since the last message)", r.More)
	}
	return text
}

// How many refusals of a server are told of: each host and port once in a period, and not
// more than some in it.
const (
	refusalPeriod  = time.Minute
	refusalsTold   = 20
	refusalsQueued = 32
)

// refusals are those of one server, on the way to who tells of them. They are safe for
// concurrent use; what nobody takes is counted.
type refusals struct {
	queue chan Refusal

	mu    sync.Mutex
	since time.Time
	told  map[Refusal]bool
	more  int
}

func newRefusals() *refusals { return &refusals{queue: make(chan Refusal, refusalsQueued)} }

// add adds one, and never waits.
func (r *refusals) add(one Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.told == nil || now.Sub(r.since) > refusalPeriod {
		r.since, r.told = now, make(map[Refusal]bool)
	}
	if r.told[one] || len(r.told) >= refusalsTold {
		r.more++
		return
	}
	r.told[one] = true
	one.More = r.more
	select {
	case r.queue <- one:
		r.more = 0
	default:
		r.more++
	}
}

// next returns one that waits to be told of, if there is any.
func (r *refusals) next() (one Refusal, ok bool) {
	select {
	case one = <-r.queue:
		return one, true
	default:
		return one, false
	}
}
