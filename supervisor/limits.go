// SPDX-License-Identifier: Apache-2.0

package supervisor

import "time"

// limits are the times and sizes of a run. They are fields so that tests need
// not wait as long as people do.
type limits struct {
	// The steps of a stop.
	eof  time.Duration // after standard input was closed
	term time.Duration // after SIGTERM
	kill time.Duration // after SIGKILL, for the tree to be gone

	exit    time.Duration // for the exit to follow the end of output
	large   time.Duration // for that of a server with a limit of memory, besides
	drain   time.Duration // for the last lines to be read after the exit
	note    time.Duration // for a server to take a notification
	reply   time.Duration // for a server to take an answer
	recheck time.Duration // between looks whether what made a server fail is gone

	look      time.Duration // between looks at a process
	suspended time.Duration // for one that is stopped by a signal to be given up
	spinning  time.Duration // for one that computes for nobody to be told of
	whole     float64       // of a processor, for one that does nothing but compute
	idle      time.Duration // without a word, for a server to be asked whether it lives
	answer    time.Duration // for its answer to that

	noCgroup bool // as where garra may not make control groups

	frame int64 // the largest message in bytes; 0 is the protocol package's own
}

// standardLimits are what garra runs with.
func standardLimits() limits {
	return limits{
		eof: 2 * time.Second, term: 3 * time.Second, kill: 5 * time.Second,
		exit: 400 * time.Millisecond, large: 2 * time.Second, drain: 400 * time.Millisecond,
		note: time.Second, reply: 30 * time.Second, recheck: 10 * time.Second,
		look: 5 * time.Second, suspended: 10 * time.Second, spinning: time.Minute, whole: 0.95,
		idle: 30 * time.Second, answer: 10 * time.Second,
	}
}
