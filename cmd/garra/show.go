// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/internal/hide"
	"github.com/garraia/garra/mcpconfig"
)

func newConfigShow(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "show", Short: "Show the configuration as garra understands it",
		Args: exactArgs(0),
		Long: `Shows each server as garra understands its entry, with defaults. Of env and headers
only the names are shown. Of args and url the values are hidden whose names say that
they are secret, as after --token, and users, passwords and query values in URLs; the
rest is shown. References such as ${NAME} are shown as they are written.

Exit codes: 65 when a file cannot be parsed.`,
		RunE: func(*cobra.Command, []string) error {
			config, err := g.config()
			if err != nil {
				return err
			}
			shown := []shownServer{}
			for _, s := range config.Servers {
				shown = append(shown, show(s))
			}
			if asJSON {
				return g.writeJSON(map[string]any{"servers": shown})
			}
			return g.printShown(shown)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"servers": [...]}`)
	return c
}

// A shownServer is an entry as it is in force. Values of env and headers may be
// secrets, so only their names are in it, and what args and url may hold of that is
// hidden; references stay unresolved.
type shownServer struct {
	Name             string   `json:"name"`
	Source           string   `json:"source"`
	Transport        string   `json:"transport"`
	Enabled          bool     `json:"enabled"`
	Command          string   `json:"command,omitempty"`
	Args             []string `json:"args,omitempty"`
	Cwd              string   `json:"cwd,omitempty"`
	EnvFile          string   `json:"env_file,omitempty"`
	Env              []string `json:"env,omitempty"`
	URL              string   `json:"url,omitempty"`
	Headers          []string `json:"headers,omitempty"`
	TimeoutSecs      float64  `json:"timeout_secs"`
	CallTimeoutSecs  float64  `json:"call_timeout_secs"`
	MaxRestarts      int      `json:"max_restarts"`
	RestartDelaySecs float64  `json:"restart_delay_secs"`
	AllowedTools     []string `json:"allowed_tools,omitempty"`
	DeniedTools      []string `json:"denied_tools,omitempty"`
	InheritEnv       *bool    `json:"inherit_env,omitempty"` // nil where it means nothing
	ForwardRoots     bool     `json:"forward_roots"`
}

// show leaves out what means nothing for this kind of server.
func show(s *mcpconfig.Server) shownServer {
	shown := shownServer{
		Name: s.Name, Source: s.Origin.String(), Transport: string(s.Transport), Enabled: s.Enabled,
		TimeoutSecs: s.Timeout.Seconds(), CallTimeoutSecs: s.CallTimeout.Seconds(),
		MaxRestarts: s.MaxRestarts, RestartDelaySecs: s.RestartDelay.Seconds(),
		AllowedTools: s.AllowedTools, DeniedTools: s.DeniedTools, ForwardRoots: s.ForwardRoots,
	}
	if s.Transport != mcpconfig.Stdio {
		shown.URL, shown.Headers = hide.URL(s.URL), slices.Sorted(maps.Keys(s.Headers))
		return shown
	}
	shown.Command, shown.Args, shown.Cwd, shown.EnvFile = s.Command, hide.Args(s.Args), s.Cwd, s.EnvFile
	shown.Env, shown.InheritEnv = slices.Sorted(maps.Keys(s.Env)), &s.InheritEnv
	return shown
}

func (g *globals) printShown(servers []shownServer) error {
	t := g.table()
	for i := range servers {
		s := &servers[i]
		row := func(name string, value any, given bool) {
			if given {
				t.row("  "+name, fmt.Sprint(value))
			}
		}
		t.row(s.Name, s.Source)
		row("command", s.Command, s.Command != "")
		row("args", fmt.Sprintf("%q", s.Args), len(s.Args) > 0)
		row("cwd", s.Cwd, s.Cwd != "")
		row("env file", s.EnvFile, s.EnvFile != "")
		row("env", strings.Join(s.Env, ", "), len(s.Env) > 0)
		row("url", s.URL, s.URL != "")
		row("headers", strings.Join(s.Headers, ", "), len(s.Headers) > 0)
		row("disabled", "yes", !s.Enabled)
		row("inherits env", "yes", s.InheritEnv != nil && *s.InheritEnv)
		row("forwards roots", "yes", s.ForwardRoots)
		row("timeouts", fmt.Sprintf("%gs to start, %gs a call", s.TimeoutSecs, s.CallTimeoutSecs), true)
		row("restarts", fmt.Sprintf("%d, the first after %gs", s.MaxRestarts, s.RestartDelaySecs), true)
		row("allowed tools", fmt.Sprintf("%q", s.AllowedTools), len(s.AllowedTools) > 0)
		row("denied tools", fmt.Sprintf("%q", s.DeniedTools), len(s.DeniedTools) > 0)
	}
	return t.flush()
}
