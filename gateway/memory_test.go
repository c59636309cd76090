// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/misbehave"
	"github.com/garraia/garra/protocol"
	"github.com/garraia/garra/source"
)

// infoOfServer is what lists show of a server.
func infoOfServer(r *rig, name string) gateway.ServerInfo {
	servers := r.gateway.Servers()
	i := slices.IndexFunc(servers, func(s gateway.ServerInfo) bool { return s.Name == name })
	return servers[i]
}

// A server's memory is shown while it runs, and that it was the cause when it ended.
func TestMemoryIsShown(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits of memory need Linux")
	}
	if misbehave.Instrumented() {
		t.Skip("the race detector takes more memory than the limit allows")
	}
	r := newRig(t)
	leaky := entry("leaky")
	leaky.MemoryLimitMB, leaky.MaxRestarts = 256, 0
	r.apply(entry("free"), leaky)
	r.state("free", source.Ready)
	r.state("leaky", source.Ready)
	if m := infoOfServer(r, "free").Memory; m.LimitMB != nil || m.UsedMB == nil || len(m.EnforcedBy) > 0 {
		t.Errorf("without a limit: %+v", m)
	}
	m := infoOfServer(r, "leaky").Memory
	if m.LimitMB == nil || *m.LimitMB != 256 || m.UsedMB == nil || *m.UsedMB < 1 || *m.UsedMB > 100 ||
		!slices.Contains(m.EnforcedBy, "sampler") {
		t.Errorf("with a limit: %+v", m)
	}
	r.leak("leaky")
	r.state("leaky", source.Parked)
	info := infoOfServer(r, "leaky")
	if info.Reason != "memory" || info.LastError == nil || !strings.Contains(*info.LastError, "set memoryLimitMb to") {
		t.Errorf("afterwards: %q, %v", info.Reason, info.LastError)
	}
	if m := info.Memory; m.UsedMB != nil || len(m.EnforcedBy) > 0 || *m.LimitMB != 256 {
		t.Errorf("afterwards: %+v", m)
	}
}

// leak has a server take memory until it is gone.
func (r *rig) leak(name string) {
	for range 100 {
		call := source.Call{Method: "tools/call", Params: protocol.Raw(`{"name":"alloc","arguments":{"mb":16}}`)}
		if _, err := r.supervisor.Server(name).Call(r.t.Context(), &call); err != nil {
			return
		}
	}
}
