// SPDX-License-Identifier: Apache-2.0

package source

import "time"

// A State is where a source stands in its life.
type State string

// The states. A source that is Parked failed more often in a row than its
// policy allows and is tried again now and then; one that is Failed has a cause
// that trying again can't mend.
const (
	Stopped  State = "stopped"
	Starting State = "starting"
	Ready    State = "ready"
	Backoff  State = "backoff"
	Parked   State = "parked"
	Stopping State = "stopping"
	Disabled State = "disabled"
	Failed   State = "failed"
)

// Listed reports whether the tools of a source in this state, once known, are
// shown to clients: a call brings it back or waits for it, and a restart passes
// through Stopping.
func (s State) Listed() bool {
	switch s {
	case Starting, Ready, Backoff, Parked, Stopping:
		return true
	case Stopped, Disabled, Failed:
		return false
	}
	return false
}

// Listed is State.Listed, and true of a source that sleeps: a call wakes it.
func (s *Status) Listed() bool { return s.Asleep || s.State.Listed() }

// EnvMode says what a server's environment was made from.
type EnvMode string

// The modes: from an allowlist, or garra's whole environment.
const (
	EnvIsolated  EnvMode = "isolated"
	EnvInherited EnvMode = "inherited"
)

// A Status is one consistent look at a source.
type Status struct {
	State     State
	Asleep    bool      // Stopped only until somebody needs it
	Since     time.Time // of State
	Tried     bool      // it was ready, or failed to become so, at least once
	PID       int       // of the server itself; 0 when no process runs
	Restarts  int       // automatic ones since garra began
	LastError *Failure  // why it isn't ready; nil when it is, or nothing went wrong
	NextTry   time.Time // zero when none is planned
	Env       Env
	Command   Command
	Hello     *Hello // nil unless ready
	Noise     int    // lines on standard output that were no messages
	Limits    Limits // of the process that runs
	Sandbox   Sandbox
	// Secrets are the secrets that it was started with, sorted: KEY for one of the
	// vault, STORE:KEY for any other. Nil until that is known.
	Secrets []string
}

// Env says what a server's environment holds, never its values.
type Env struct {
	Mode  EnvMode
	Names []string          // sorted
	From  map[string]string // name → where its value came from
	// Forced is set when the entry asks for the whole environment and isn't
	// given it, since somebody restarted the server through the API.
	Forced  bool
	Dropped []string // the names that Forced took away, sorted
}

// Limits says what became of the limits that an entry sets.
type Limits struct {
	// Memory is what holds a server to its limit of memory: cgroup2, cgroup1,
	// rlimit_data, sampler. It is empty when nothing does.
	Memory []string
	// Unenforced says in words what isn't in force as it was asked for.
	Unenforced []string
}

// Sandbox says what confines a server, or confined it last. It is empty before its first
// start.
type Sandbox struct {
	// Effective is namespaces, landlock, basic or off.
	Effective string
	// Unenforced says in words, a sentence each, what the server could do nevertheless.
	Unenforced []string
	Home       string   // the folder that it has in place of the user's home
	Read       []string // what else it may read, besides what all servers may
	Write      []string // what else it may write
	Network    string   // internet, none, all or listed
}

// Command says which file is run, and where it was looked for.
type Command struct {
	Path       string   // of the executable
	Dir        string   // working directory
	SearchPath []string // folders that were searched for it
}

// A Line is one line that a server wrote to standard error, or a note of garra's between
// those.
type Line struct {
	Seq  uint64 // counts from 1 over the life of the source in this garra
	Time time.Time
	Text string
	Note bool // it is garra that says this
}
