// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"slices"

	"github.com/garraia/garra/source"
)

// moves are the changes of state that can happen. Each state may also be
// entered again, which only renews the cause.
var moves = map[source.State][]source.State{
	source.Stopped:  {source.Starting, source.Disabled},
	source.Disabled: {source.Starting, source.Stopped},
	source.Starting: {source.Ready, source.Backoff, source.Parked, source.Failed, source.Stopping},
	source.Ready:    {source.Starting, source.Backoff, source.Parked, source.Failed, source.Stopping},
	source.Backoff:  {source.Starting, source.Stopped, source.Disabled},
	source.Parked:   {source.Starting, source.Stopped, source.Disabled},
	source.Failed:   {source.Starting, source.Stopped, source.Disabled},
	source.Stopping: {source.Stopped, source.Disabled, source.Starting, source.Failed},
}

// possible reports whether a server can go from one state to the other.
func possible(from, to source.State) bool {
	return from == to || slices.Contains(moves[from], to)
}
