// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package systemd

import "time"

// monotonic is 0: there is no manager that asks for it.
func monotonic() time.Duration { return 0 }
