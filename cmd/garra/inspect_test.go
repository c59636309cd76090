// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/garraia/garra/gateway"
)

func TestMemoryText(t *testing.T) {
	used, limit := 79, 512
	for want, m := range map[string]gateway.MemoryInfo{
		"":               {},
		"79 MB used":     {UsedMB: &used},
		"at most 512 MB": {LimitMB: &limit},
		"79 MB used, at most 512 MB, enforced by cgroup2, sampler": {
			UsedMB: &used, LimitMB: &limit, EnforcedBy: []string{"cgroup2", "sampler"},
		},
	} {
		if got := memoryText(m); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
