// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hangup

import (
	"context"
	"syscall"
)

// await asks: nothing here sleeps until a stream is hung up.
func await(ctx context.Context, conn syscall.RawConn) (gone bool) { return ask(ctx, conn) }
