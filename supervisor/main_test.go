// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/sandbox"
)

// TestMain also plays the launcher and the servers, and looks for goroutines
// that the tests left behind.
func TestMain(m *testing.M) {
	sandbox.Main()
	misbehave.Main()
	goleak.VerifyTestMain(m)
}
