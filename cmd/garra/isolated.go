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

// impose takes inheritEnv from the entries that don't get it, since their servers
// were restarted in a running gateway, and returns their names. Who is no gateway
// reads what that has remembered, and changes nothing of it.
func impose(p place.Places, config *mcpconfig.Config) (map[string]bool, error) {
	forced, err := supervisor.ReadIsolation(isolationFile(p))
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, entry := range config.Servers {
		if forced(entry) {
			entry.InheritEnv = false
			names[entry.Name] = true
		}
	}
	return names, nil
}

// correct makes findings say what is true of the entries that don't get the
// environment that they ask for.
func (i isolated) correct(config *mcpconfig.Config) mcpconfig.Findings {
	findings := slices.Clone(config.Findings)
	for n := range findings {
		f := &findings[n]
		if entry, ok := config.Server(f.Server); ok && f.Code == mcpconfig.CodeEnvInherited && i.holds(entry) {
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
