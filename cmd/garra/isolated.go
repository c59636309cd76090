// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
	"github.com/garraia/garra/supervisor"
)

// isolationFile is where a running gateway remembers who runs isolated.
func isolationFile(p place.Places) string { return filepath.Join(p.RunDir, "isolated.json") }

// isolated reports of an entry that asks for garra's environment whether it
// doesn't get it, since its server was restarted in a running gateway.
type isolated func(*mcpconfig.Server) bool

// readIsolated reads what the gateway of a configuration has remembered. Who is no
// gateway changes nothing of it.
func readIsolated(p place.Places) (isolated, error) {
	return supervisor.ReadIsolation(isolationFile(p))
}

// impose takes inheritEnv from the entries that don't get it, and returns their
// names.
func (i isolated) impose(config *mcpconfig.Config) map[string]bool {
	names := make(map[string]bool)
	for _, entry := range config.Servers {
		if i(entry) {
			entry.InheritEnv = false
			names[entry.Name] = true
		}
	}
	return names
}

// correct makes findings say what is true of the entries that don't get the
// environment that they ask for.
func (i isolated) correct(config *mcpconfig.Config) mcpconfig.Findings {
	findings := slices.Clone(config.Findings)
	for n := range findings {
		f := &findings[n]
		if entry, ok := config.Server(f.Server); ok && f.Code == mcpconfig.CodeEnvInherited && i(entry) {
			f.Message = "the entry asks for garra's whole environment; since the server was restarted it runs " +
				"without, until its entry changes"
		}
	}
	return findings
}

// mark shows in what is told of a server that its entry asks for more.
func mark(info *gateway.ServerInfo, names map[string]bool) {
	if names[info.Name] {
		info.Env.Was = source.EnvInherited
	}
}
