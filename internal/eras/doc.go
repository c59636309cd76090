// SPDX-License-Identifier: Apache-2.0

// Package eras is what garra says to servers as their client, whichever way the
// messages go: how it introduces itself, in the era with a handshake (MCP up to
// revision 2025-11-25) and in the one without (since 2026-07-28), and how it
// hears news where there is no session to hear them in.
package eras

import "github.com/garraia/garra/protocol"

// Raw is JSON text.
type Raw = protocol.Raw
