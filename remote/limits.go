// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"time"

	"github.com/garraia/garra/protocol"
)

// limits are the times and sizes of a run. They are fields so that tests need
// not wait as long as people do.
type limits struct {
	dial    time.Duration // to connect to one address
	note    time.Duration // for a server to take a notification
	reply   time.Duration // for a server to take an answer
	check   time.Duration // to answer a ping when it is in doubt
	bye     time.Duration // to take the end of a session
	grace   time.Duration // for calls in flight to end when the session is known to be over
	linger  time.Duration // for a stream to end after its answer
	recheck time.Duration // between looks whether what made a server fail is gone
	stable  time.Duration // a stream that lived so long is opened again without growing delays

	retry    time.Duration // before a stream is opened again, if the server says nothing else
	retryMin time.Duration // what the server may say at least
	retryMax time.Duration // and at most

	frame   int64 // the largest message in bytes
	headers int64 // the largest header of an answer in bytes
}

// standardLimits are what garra runs with.
func standardLimits() limits {
	return limits{
		dial: 15 * time.Second, note: 10 * time.Second, reply: 30 * time.Second, check: 10 * time.Second,
		bye: 2 * time.Second, grace: 500 * time.Millisecond, linger: 250 * time.Millisecond, recheck: 10 * time.Second,
		stable: 30 * time.Second,
		retry:  time.Second, retryMin: 100 * time.Millisecond, retryMax: time.Minute,
		frame: protocol.DefaultMaxFrame, headers: 256 << 10,
	}
}
