// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/garraia/garra/source"
)

// Each state can be left, and none leads to a run beside another one.
func TestMoves(t *testing.T) {
	t.Parallel()
	running := map[source.State]bool{source.Starting: true, source.Ready: true, source.Stopping: true}
	all := []source.State{
		source.Stopped, source.Starting, source.Ready, source.Backoff,
		source.Parked, source.Stopping, source.Disabled, source.Failed,
	}
	for _, from := range all {
		if len(moves(from)) == 0 {
			t.Errorf("%s can't be left", from)
		}
		if !possible(from, from) {
			t.Errorf("%s can't be entered again", from)
		}
		for _, to := range moves(from) {
			if to == source.Stopping && !running[from] {
				t.Errorf("%s has nothing to stop", from)
			}
			if to == source.Ready && from != source.Starting {
				t.Errorf("%s became ready without a start", from)
			}
			if running[from] && (to == source.Stopped || to == source.Disabled) && from != source.Stopping {
				t.Errorf("%s went to %s without a stop", from, to)
			}
		}
	}
	if possible("nowhere", source.Starting) {
		t.Error("an unknown state leads somewhere")
	}
}
