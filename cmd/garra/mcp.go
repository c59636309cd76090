// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/mcpconfig"
)

func newMCP(g *globals) *cobra.Command {
	return group("mcp", "List, inspect, call and control servers",
		newMCPList(g), newMCPInspect(g), newMCPTools(g), newMCPCall(g), newMCPLogs(g),
		newMCPStart(g), newMCPStop(g), newMCPRestart(g),
	)
}

// running returns a client of the running gateway, nil when there is none.
func (g *globals) running(ctx context.Context) (*adminapi.Client, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	c, err := adminapi.Dial(ctx, places.Socket)
	if errors.Is(err, adminapi.ErrNotRunning) {
		return nil, nil
	}
	return c, err
}

// config loads the configuration for a command that works without a gateway.
func (g *globals) config() (*mcpconfig.Config, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	config, err := mcpconfig.Load(places.ConfigDir)
	if err != nil {
		return nil, err
	}
	if bad := config.Unparsable(); len(bad) > 0 {
		return nil, &exitError{exitUnparsable, unparsable(config, bad)}
	}
	return config, nil
}

func newMCPList(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "list", Short: "List all servers; starts none", Args: exactArgs(0),
		Long: `Lists all servers: the state of each, how many tools clients may call, its process,
automatic restarts, environment, the line of its entry, and what went wrong last.
When no gateway runs, all of them are stopped; none is started.

Exit codes: 65 when no gateway runs and a file cannot be parsed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			servers, err := g.listServers(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(map[string]any{"servers": servers})
			}
			return g.printServers(servers)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"servers": [...]}`)
	return c
}

func (g *globals) listServers(ctx context.Context) ([]gateway.ServerInfo, error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, err
	}
	if client != nil {
		return client.Servers(ctx)
	}
	config, err := g.config()
	if err != nil {
		return nil, err
	}
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	remembered, err := readIsolated(places)
	if err != nil {
		return nil, err
	}
	names := remembered.impose(config)
	servers := []gateway.ServerInfo{}
	for _, entry := range config.Servers {
		info := gateway.Offline(entry)
		mark(&info, names)
		servers = append(servers, info)
	}
	return servers, nil
}

func (g *globals) printServers(servers []gateway.ServerInfo) error {
	if len(servers) == 0 {
		places, err := g.places()
		if err != nil {
			return err
		}
		fmt.Fprintf(g.err, "no servers are configured; write them to %s\n",
			filepath.Join(places.ConfigDir, mcpconfig.ServersFile))
		return nil
	}
	t := g.table("NAME", "STATE", "TOOLS", "PID", "RESTARTS", "ENV", "SOURCE", "LAST ERROR")
	for _, s := range servers {
		t.row(s.Name, string(s.State), orDash(s.Tools), orDash(s.PID), strconv.Itoa(s.Restarts),
			string(s.Env.Mode), s.Source, t.text(firstLine(s.LastError)))
	}
	return t.flush()
}

func orDash(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

func firstLine(text *string) string {
	if text == nil {
		return ""
	}
	line, _, _ := strings.Cut(*text, "\n")
	return line
}
