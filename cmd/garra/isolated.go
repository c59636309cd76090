// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// isolationFile is where a running gateway remembers who runs isolated.
func isolationFile(p place.Places) string { return filepath.Join(p.RunDir, "isolated.json") }

// An isolated is what a gateway has remembered: the digest of each entry whose
// server was restarted, and so runs isolated although it says inheritEnv. Who is
// no gateway reads it and changes nothing.
type isolated map[string]string

// readIsolated reads the file of a configuration. One that can't be read is an
// error: whoever went on would hand the environment to servers that must not
// have it.
func readIsolated(p place.Places) (isolated, error) {
	list := isolated{}
	data, err := os.ReadFile(isolationFile(p))
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which servers run isolated: %s: %w", isolationFile(p), err)
	}
	return list, nil
}

// holds reports whether an entry that asks for the environment doesn't get it.
func (i isolated) holds(entry *mcpconfig.Server) bool {
	digest, ok := i[entry.Name]
	return ok && entry.InheritEnv && digest == entry.Digest()
}

// impose takes inheritEnv from the entries that don't get it, and returns their
// names.
func (i isolated) impose(config *mcpconfig.Config) map[string]bool {
	names := make(map[string]bool)
	for _, entry := range config.Servers {
		if i.holds(entry) {
			entry.InheritEnv = false
			names[entry.Name] = true
		}
	}
	return names
}

// mark shows in what is told of a server that its entry asks for more.
func mark(info *gateway.ServerInfo, names map[string]bool) {
	if names[info.Name] {
		info.Env.Was = source.EnvInherited
	}
}
