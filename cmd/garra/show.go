// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
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
		Long: `Shows each server as garra understands its entry, with defaults; the text leaves out
what few entries set. Of env and headers only the names are shown. Of args and url the
values are hidden whose names say that they are secret, as after --token, and users,
passwords and query values in URLs, and of oauth the client's secret; the rest is shown.
References such as ${NAME} are shown as they are written.

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
	Name             string      `json:"name"`
	Source           string      `json:"source"`
	Transport        string      `json:"transport"`
	Enabled          bool        `json:"enabled"`
	Command          string      `json:"command,omitempty"`
	Args             []string    `json:"args,omitempty"`
	Cwd              string      `json:"cwd,omitempty"`
	EnvFile          string      `json:"env_file,omitempty"`
	Env              []string    `json:"env,omitempty"`
	URL              string      `json:"url,omitempty"`
	Headers          []string    `json:"headers,omitempty"`
	OAuth            *shownOAuth `json:"oauth,omitempty"`
	PrivateAddresses bool        `json:"allow_private_addresses,omitempty"`
	TimeoutSecs      float64     `json:"timeout_secs"`
	CallTimeoutSecs  float64     `json:"call_timeout_secs"`
	MaxRestarts      int         `json:"max_restarts"`
	RestartDelaySecs float64     `json:"restart_delay_secs"`
	Tools            string      `json:"tools"`
	AllowedTools     []string    `json:"allowed_tools,omitempty"`
	DeniedTools      []string    `json:"denied_tools,omitempty"`
	ConfirmTools     []string    `json:"confirm_tools,omitempty"`
	NotSecret        []string    `json:"not_secret,omitempty"`
	ForwardRoots     bool        `json:"forward_roots"`
	Era              string      `json:"protocol_era"`
	*shownProcess                // nil where garra runs none
}

// A shownOAuth is who garra is to an authorization server. The secret isn't in it.
type shownOAuth struct {
	ClientID     string   `json:"client_id,omitempty"`
	HasSecret    bool     `json:"has_client_secret,omitempty"`
	MetadataURL  string   `json:"client_metadata_url,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	CallbackPort int      `json:"callback_port,omitempty"`
}

// A shownProcess is what an entry says of a process that garra runs.
type shownProcess struct {
	InheritEnv          bool         `json:"inherit_env"`
	Sharing             string       `json:"sharing"`
	Start               string       `json:"start"`
	IdleStopSecs        float64      `json:"idle_stop_secs,omitempty"`
	MemoryLimitMB       int          `json:"memory_limit_mb,omitempty"`
	AddressSpaceLimitMB int          `json:"address_space_limit_mb,omitempty"`
	CPULimit            float64      `json:"cpu_limit,omitempty"`
	MaxProcesses        int          `json:"max_processes,omitempty"`
	MaxOpenFiles        int          `json:"max_open_files,omitempty"`
	Sandbox             shownSandbox `json:"sandbox"`
}

// A shownSandbox is the sandbox that an entry asks for.
type shownSandbox struct {
	Mode         string   `json:"mode"`
	Profile      string   `json:"profile,omitempty"`
	Read         []string `json:"read,omitempty"`
	Write        []string `json:"write,omitempty"`
	Network      string   `json:"network,omitempty"`
	NetworkHosts []string `json:"network_hosts,omitempty"`
}

// show leaves out what means nothing for this kind of server.
func show(s *mcpconfig.Server) shownServer {
	shown := shownServer{
		Name: s.Name, Source: s.Origin.String(), Transport: string(s.Transport), Enabled: s.Enabled,
		TimeoutSecs: s.Timeout.Seconds(), CallTimeoutSecs: s.CallTimeout.Seconds(),
		MaxRestarts: s.MaxRestarts, RestartDelaySecs: s.RestartDelay.Seconds(),
		Tools: string(s.Tools), AllowedTools: s.AllowedTools, DeniedTools: s.DeniedTools,
		ConfirmTools: s.ConfirmTools, NotSecret: s.NotSecret, ForwardRoots: s.ForwardRoots, Era: string(s.Era),
	}
	if s.Transport != mcpconfig.Stdio {
		shown.URL, shown.Headers = hide.URL(s.URL), slices.Sorted(maps.Keys(s.Headers))
		shown.OAuth, shown.PrivateAddresses = showOAuth(&s.OAuth), s.AllowPrivateAddresses
		return shown
	}
	shown.Command, shown.Args, shown.Cwd, shown.EnvFile = s.Command, hide.Args(s.Args), s.Cwd, s.EnvFile
	shown.Env = slices.Sorted(maps.Keys(s.Env))
	shown.shownProcess = &shownProcess{
		InheritEnv: s.InheritEnv, Sharing: string(s.Sharing),
		Start: string(s.Start), IdleStopSecs: s.IdleStop.Seconds(),
		MemoryLimitMB: s.MemoryLimitMB, AddressSpaceLimitMB: s.AddressSpaceLimitMB, CPULimit: s.CPULimit,
		MaxProcesses: s.MaxProcesses, MaxOpenFiles: s.MaxOpenFiles,
		Sandbox: shownSandbox{
			Mode: string(s.Sandbox.Mode), Profile: string(s.Sandbox.Profile),
			Read: s.Sandbox.Read, Write: s.Sandbox.Write,
			Network: string(s.Sandbox.Network.Mode), NetworkHosts: s.Sandbox.Network.Hosts,
		},
	}
	return shown
}

// showOAuth is nil for an entry that leaves all of it to the server.
func showOAuth(o *mcpconfig.OAuth) *shownOAuth {
	shown := shownOAuth{
		ClientID: o.ClientID, HasSecret: o.ClientSecret != "", MetadataURL: hide.URL(o.ClientMetadataURL),
		Issuer: hide.URL(o.Issuer), Scopes: o.Scopes, CallbackPort: o.CallbackPort,
	}
	if reflect.DeepEqual(shown, shownOAuth{}) {
		return nil
	}
	return &shown
}

func (g *globals) printShown(servers []shownServer) error {
	t := g.pairs()
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
		if s.OAuth != nil {
			row("oauth", s.OAuth, true)
		}
		row("private addresses", "allowed", s.PrivateAddresses)
		row("disabled", "yes", !s.Enabled)
		row("forwards roots", "yes", s.ForwardRoots)
		row("timeouts", fmt.Sprintf("%gs to start, %gs a call", s.TimeoutSecs, s.CallTimeoutSecs), true)
		row("restarts", fmt.Sprintf("%d, the first after %gs", s.MaxRestarts, s.RestartDelaySecs), true)
		row("tools", "searched: found by find_tool", s.Tools == string(mcpconfig.ToolsSearch))
		row("allowed tools", fmt.Sprintf("%q", s.AllowedTools), len(s.AllowedTools) > 0)
		row("denied tools", fmt.Sprintf("%q", s.DeniedTools), len(s.DeniedTools) > 0)
		row("confirm tools", fmt.Sprintf("%q", s.ConfirmTools), len(s.ConfirmTools) > 0)
		row("not secret", fmt.Sprintf("%q", s.NotSecret), len(s.NotSecret) > 0)
		row("protocol era", s.Era, s.Era != string(mcpconfig.EraAuto))
		if s.shownProcess != nil {
			s.shownProcess.rows(row)
		}
	}
	return t.flush()
}

// String is all of it on one line.
func (o *shownOAuth) String() string {
	var parts []string
	add := func(name string, value any, given bool) {
		if given {
			parts = append(parts, fmt.Sprintf("%s %v", name, value))
		}
	}
	add("client", o.ClientID, o.ClientID != "")
	add("secret", "***", o.HasSecret)
	add("metadata", o.MetadataURL, o.MetadataURL != "")
	add("issuer", o.Issuer, o.Issuer != "")
	add("scopes", strings.Join(o.Scopes, " "), len(o.Scopes) > 0)
	add("callback port", o.CallbackPort, o.CallbackPort != 0)
	return strings.Join(parts, ", ")
}

// rows shows what is not the default.
func (p *shownProcess) rows(row func(name string, value any, given bool)) {
	row("inherits env", "yes", p.InheritEnv)
	row("sharing", p.Sharing, p.Sharing != string(mcpconfig.SharingShared))
	row("start", p.Start, p.Start != string(mcpconfig.StartEager))
	row("idle stop", fmt.Sprintf("after %gs", p.IdleStopSecs), p.IdleStopSecs > 0)
	row("memory limit", fmt.Sprintf("%d MB", p.MemoryLimitMB), p.MemoryLimitMB > 0)
	row("address space limit", fmt.Sprintf("%d MB", p.AddressSpaceLimitMB), p.AddressSpaceLimitMB > 0)
	row("cpu limit", fmt.Sprintf("%g cores", p.CPULimit), p.CPULimit > 0)
	row("max processes", p.MaxProcesses, p.MaxProcesses > 0)
	row("max open files", p.MaxOpenFiles, p.MaxOpenFiles > 0)
	row("sandbox", p.Sandbox.Mode, p.Sandbox.Mode != string(mcpconfig.SandboxBestEffort))
	row("sandbox profile", p.Sandbox.Profile, p.Sandbox.Profile != "")
	row("sandbox read", fmt.Sprintf("%q", p.Sandbox.Read), len(p.Sandbox.Read) > 0)
	row("sandbox write", fmt.Sprintf("%q", p.Sandbox.Write), len(p.Sandbox.Write) > 0)
	row("sandbox network", strings.TrimSpace(p.Sandbox.Network+" "+strings.Join(p.Sandbox.NetworkHosts, " ")),
		p.Sandbox.Network != "")
}
