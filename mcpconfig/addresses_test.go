// SPDX-License-Identifier: Apache-2.0

package mcpconfig

import (
	"fmt"
	"slices"
	"testing"
)

func TestAddressSpaceWarning(t *testing.T) {
	for command, want := range map[string]bool{
		"npx": true, "/usr/bin/node": true, `C:\\node\\NPX.CMD`: true, "java": true, "chromium": true,
		"python3": false, "./node-server": false, "uvx": false,
	} {
		text := fmt.Sprintf(`{"mcpServers": {"s": {"command": "%s", "addressSpaceLimitMb": 512}}}`, command)
		got := slices.ContainsFunc(loadText(t, ServersFile, text).Findings, func(f Finding) bool {
			return f.Code == CodeMemoryAddressSpace && f.Line == 1 && f.Severity == Warning
		})
		if got != want {
			t.Errorf("%s: reported is %v, not %v", command, got, want)
		}
	}
}
