// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/garraia/garra/internal/sourcetest"
)

// TestMain looks for goroutines that the tests left behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Short names for what every test says.
type fields = sourcetest.Fields

var (
	failed   = sourcetest.Failed
	contains = sourcetest.Contains
)
