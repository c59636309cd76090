// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that the tests left behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
