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
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/mcpconfig"
)

func newMCP(g *globals) *cobra.Command {
	return group("mcp", "List, inspect, call and control servers, and log in to them",
		newMCPList(g), newMCPInspect(g), newMCPTools(g), newMCPCall(g), newMCPLogs(g),
		newMCPStart(g), newMCPStop(g), newMCPRestart(g), newMCPAdd(g), newMCPRemove(g),
		newMCPSwitch(g, true), newMCPSwitch(g, false),
		newMCPLogin(g), newMCPLogout(g),
	)
}

// running returns a client of the running gateway, nil when there is none.
func (g *globals) running(ctx context.Context) (*adminapi.Client, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, places)
	if c != nil || err != nil {
		return c, err
	}
	// Where a socket is whose path would be too long depends on the environment,
	// and the gateway's may be another.
	if run, err := readRunFile(places); err == nil && run.Socket != places.Socket {
		places.Socket = run.Socket
		return dial(ctx, places)
	}
	return nil, nil
}

// dial returns a client of the gateway at a socket, nil when there is none.
func dial(ctx context.Context, places place.Places) (*adminapi.Client, error) {
	if err := places.CheckSocket(); err != nil {
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
		Long: `Lists all servers: the state of each, how many tools of it clients are shown and may
call ("-" when they are shown none, as of one that is stopped, disabled or failed), its
process, automatic restarts, environment, the line of its entry, and what went wrong
last. A terminal gets no more than fits on its lines; elsewhere, and with --json,
nothing is cut.
When no gateway runs, all of them are stopped; none is started. A server whose entry is
not valid is failed.

Exit codes: 65 when no gateway runs and a file cannot be parsed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := g.list(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(list)
			}
			return g.printServers(list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"servers": [...]}`)
	return c
}

// list asks the running gateway for all servers, or reads of them.
func (g *globals) list(ctx context.Context) (list adminapi.Listing, err error) {
	client, err := g.running(ctx)
	if err != nil {
		return list, err
	}
	if client != nil {
		return client.List(ctx)
	}
	config, err := g.config()
	if err != nil {
		return list, err
	}
	places, err := g.places()
	if err != nil {
		return list, err
	}
	remembered, err := readIsolated(places)
	if err != nil {
		return list, err
	}
	names := remembered.impose(config)
	list.Servers = []gateway.ServerInfo{}
	for _, entry := range config.Entries() {
		info := gateway.Offline(entry)
		mark(&info, names)
		list.Servers = append(list.Servers, info)
	}
	return list, nil
}

func (g *globals) printServers(list adminapi.Listing) error {
	servers := list.Servers
	if list.Refused != "" {
		fmt.Fprintf(g.err, "the files were changed and are refused; what was in force before stays: %s\n",
			printable(list.Refused))
	}
	if len(servers) == 0 {
		places, err := g.places()
		if err != nil {
			return err
		}
		fmt.Fprintf(g.err, "no servers are configured; write them to %s, or see `garra config check` "+
			"if they are there\n", filepath.Join(places.ConfigDir, mcpconfig.ServersFile))
		return nil
	}
	t := g.table("NAME", "STATE", "TOOLS", "PID", "RESTARTS", "ENV", "SOURCE", "LAST ERROR")
	for _, s := range servers {
		mode := string(s.Env.Mode)
		if s.Transport != string(mcpconfig.Stdio) {
			mode = "-" // garra doesn't run it
		}
		t.row(s.Name, string(s.State), orDash(s.Tools), orDash(s.PID), strconv.Itoa(s.Restarts),
			mode, s.Source, lastWord(&s))
	}
	return t.flush()
}

// lastWord is why a server isn't ready, on one line.
func lastWord(s *gateway.ServerInfo) string {
	if s.Asleep && s.LastError == nil {
		return "(asleep until it is needed)"
	}
	return firstLine(s.LastError)
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
