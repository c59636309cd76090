// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"slices"

	"github.com/garraia/garra/envbuild"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

// EntryOf is what envbuild needs of a server's entry. The dir is the folder that
// relative paths start from.
func EntryOf(s *mcpconfig.Server, dir string) envbuild.Entry {
	return envbuild.Entry{
		Server: s.Name, Command: s.Command, Args: s.Args, Cwd: s.Cwd, Env: s.Env, EnvFile: s.EnvFile,
		MemoryLimitMB: s.MemoryLimitMB, InheritEnv: s.InheritEnv, NotSecret: s.NotSecret, Dir: dir,
		Read: s.Sandbox.Read, Write: s.Sandbox.Write,
		Where: func(field string) string { return s.Position(field).String() },
	}
}

// envOf is what people may know of an environment.
func envOf(spec *envbuild.Spec) source.Env {
	env := source.Env{Mode: source.EnvMode(spec.Mode), From: make(map[string]string, len(spec.Vars))}
	for _, v := range spec.Vars {
		env.Names = append(env.Names, v.Name)
		env.From[v.Name] = string(v.Origin)
	}
	slices.Sort(env.Names)
	return env
}

// missing returns the names that are not in present.
func missing(names []string, present map[string]string) []string {
	lost := []string{}
	for _, name := range names {
		if _, ok := present[name]; !ok {
			lost = append(lost, name)
		}
	}
	return lost
}
