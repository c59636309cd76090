// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	"github.com/garraia/garra/source"
)

// moves returns the states that a server can go to from the given one.
func moves(from source.State) []source.State {
	switch from {
	case source.Stopped:
		return []source.State{source.Starting, source.Disabled}
	case source.Disabled:
		return []source.State{source.Starting}
	case source.Starting:
		return []source.State{source.Ready, source.Backoff, source.Parked, source.Failed, source.Stopping}
	case source.Ready:
		return []source.State{source.Backoff, source.Parked, source.Failed, source.Stopping}
	case source.Backoff, source.Parked, source.Failed:
		return []source.State{source.Starting, source.Stopped, source.Disabled}
	case source.Stopping:
		return []source.State{source.Stopped, source.Disabled, source.Starting}
	}
	return nil
}

// possible reports whether a server can go from one state to the other, or
// stay where it is.
func possible(from, to source.State) bool {
	return from == to || slices.Contains(moves(from), to)
}
