// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"time"
)

// A Stop is the end of one run of a server: of its process, or of its session.
type Stop struct {
	Time    time.Time `json:"time"`
	Uptime  float64   `json:"uptime_secs"` // of the process; 0 when none was started
	Cause   string    `json:"cause"`       // one of the constants Cause…, or a code of a Failure
	Message string    `json:"message"`     // in words
	Ending
}

// An Ending is how a process ended, as far as there was one.
type Ending struct {
	ExitCode *int     `json:"exit_code"` // null when it was killed by a signal, or not seen to end
	Signal   string   `json:"signal,omitempty"`
	PeakMB   *int     `json:"memory_peak_mb"`        // null when nobody knows
	Stderr   []string `json:"stderr_tail,omitempty"` // what it wrote last
}

// The causes of stops.
const (
	CauseStopped = "stopped" // somebody wanted it, and Message says who or why
	CauseCrashed = "crashed" // it ended by itself
	CauseTimeout = "timeout" // it did not become ready in time
	CauseFailed  = "failed"  // it could not be started
)

// CauseOf is the cause of a stop that a failure tells of: its Reason, or else what its
// Code says.
func CauseOf(f *Failure) string {
	switch {
	case f.Reason != "":
		return string(f.Reason)
	case f.Code == CallTimeout:
		return CauseTimeout
	}
	return strings.TrimPrefix(string(f.Code), "server.")
}

// A Historian is a source that remembers how its runs ended.
type Historian interface {
	// Stops returns the last ends of its runs, those of clients' own ones too, oldest
	// first. It is safe for concurrent use.
	Stops() []Stop
}
