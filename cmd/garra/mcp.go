// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

func newMCP(g *globals) *cobra.Command {
	return group("mcp", "List, inspect, call and control servers",
		newMCPList(g), newMCPInspect(g), newMCPTools(g), newMCPCall(g), newMCPLogs(g),
		newMCPAct(g, "start", "Start a server that was stopped"),
		newMCPAct(g, "stop", "Stop a server until it is started again"),
		newMCPAct(g, "restart", "Restart a server, with an isolated environment"),
	)
}

// writeJSON prints a value as indented JSON.
func (g *globals) writeJSON(value any) error {
	enc := json.NewEncoder(g.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
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
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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
	servers := []gateway.ServerInfo{}
	for _, entry := range config.Servers {
		servers = append(servers, gateway.Offline(entry))
	}
	return servers, nil
}

func (g *globals) printServers(servers []gateway.ServerInfo) error {
	if len(servers) == 0 {
		places, err := g.places()
		if err != nil {
			return err
		}
		fmt.Fprintf(g.err, "no servers are configured; write them to %s/%s\n", places.ConfigDir, mcpconfig.ServersFile)
		return nil
	}
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tTOOLS\tPID\tRESTARTS\tENV\tSOURCE\tLAST ERROR")
	for _, s := range servers {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", s.Name, s.State, orDash(s.Tools), orDash(s.PID),
			s.Restarts, s.Env.Mode, s.Source, firstLine(s.LastError))
	}
	return w.Flush()
}

func orDash(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func firstLine(text *string) string {
	if text == nil {
		return ""
	}
	line, _, _ := strings.Cut(*text, "\n")
	return printable(line)
}

func newMCPInspect(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "inspect NAME", Short: "Show everything about a server", Args: exactArgs(1),
		Long: `Shows everything about a server: its state, environment (names and where each
value comes from, never values), the file that is run, tools and what was decided
about each. When no gateway runs, the server is started for this and stopped again.

Exit codes: 1 for an unknown server and one that cannot be started.`,
		RunE: func(c *cobra.Command, args []string) error {
			detail, failure := g.inspect(c.Context(), args[0])
			if detail == nil {
				return failure
			}
			if asJSON {
				return errors.Join(failure, g.writeJSON(detail))
			}
			return errors.Join(failure, g.printDetail(detail))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// inspect returns what is known of a server; with a failure of the server both
// results are there.
func (g *globals) inspect(ctx context.Context, name string) (*gateway.ServerDetail, error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, err
	}
	if client != nil {
		detail, err := client.Detail(ctx, name, true)
		if err != nil {
			return nil, err
		}
		return &detail, notReady(&detail)
	}
	e, err := g.private(ctx, name)
	if err != nil {
		return nil, err
	}
	defer e.close(context.WithoutCancel(ctx))
	failure := e.gateway.Known(ctx, name)
	if detail, ok := e.gateway.Detail(name); ok {
		return &detail, failure
	}
	return nil, failure
}

// notReady is the failure of a server that should run and doesn't.
func notReady(d *gateway.ServerDetail) error {
	switch d.State {
	case source.Failed, source.Parked, source.Backoff:
		text := "it is " + string(d.State)
		if d.LastError != nil {
			text += ": " + *d.LastError
		}
		return source.Fail(source.ServerFailed, d.Name, "%s", text)
	case source.Stopped, source.Starting, source.Ready, source.Stopping, source.Disabled:
	}
	return nil
}

func newMCPTools(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "tools", Short: "List the tools of all servers, and which are allowed", Args: exactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error {
			tools, err := g.tools(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(map[string]any{"tools": tools})
			}
			w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SERVER\tTOOL\tEXPOSED AS\tALLOWED\tREASON")
			for _, t := range tools {
				fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%s\n", t.Server, printable(t.Name), t.ExposedAs, t.Allowed, t.Reason)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// A toolLine is one tool of `mcp tools`.
type toolLine struct {
	Server    string `json:"server"`
	Name      string `json:"name"`
	ExposedAs string `json:"exposed_as"`
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason"`
}

// tools collects the tools of all servers; those of one that can't be started
// are missing, which is said on standard error.
func (g *globals) tools(ctx context.Context) ([]toolLine, error) {
	servers, err := g.listServers(ctx)
	if err != nil {
		return nil, err
	}
	details, err := g.details(ctx, servers)
	if err != nil {
		return nil, err
	}
	tools := []toolLine{}
	for _, d := range details {
		for _, t := range d.Tools {
			tools = append(tools, toolLine{t.Server, t.Name, t.ExposedAs, t.Allowed, t.Reason})
		}
		if failure := notReady(&d); failure != nil {
			fmt.Fprintln(g.err, "garra: "+failure.Error())
		}
	}
	return tools, nil
}

// details inspects all servers at the same time.
func (g *globals) details(ctx context.Context, servers []gateway.ServerInfo) ([]gateway.ServerDetail, error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, err
	}
	var details []gateway.ServerDetail
	if client == nil {
		e, err := g.private(ctx, "")
		if err != nil {
			return nil, err
		}
		defer e.close(context.WithoutCancel(ctx))
		e.awaitAll(ctx)
		for _, s := range servers {
			if d, ok := e.gateway.Detail(s.Name); ok {
				details = append(details, d)
			}
		}
		return details, nil
	}
	for _, s := range servers {
		d, err := client.Detail(ctx, s.Name, false)
		if err != nil {
			return nil, err
		}
		details = append(details, d)
	}
	return details, nil
}

// awaitAll waits until what each server offers is known, or that it can't be.
func (e *engine) awaitAll(ctx context.Context) {
	for _, name := range e.supervisor.Names() {
		if err := e.gateway.Known(ctx, name); err != nil {
			e.log.Debug().Err(err).Msg("not inspected")
		}
	}
}

// private starts a gateway of the command's own, which listens nowhere; with
// only one server, when only is given.
func (g *globals) private(ctx context.Context, only string) (*engine, error) {
	log, err := g.logger()
	if err != nil {
		return nil, err
	}
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	e, err := newEngine(places, quieter(log), "")
	if err != nil {
		return nil, err
	}
	unknown := false
	e.edit = func(config *mcpconfig.Config) {
		if only == "" {
			return
		}
		config.Servers = slices.DeleteFunc(config.Servers, func(s *mcpconfig.Server) bool { return s.Name != only })
		unknown = len(config.Servers) == 0
	}
	if err := e.load(); err != nil {
		e.close(ctx)
		return nil, err
	}
	if unknown {
		e.close(ctx)
		return nil, source.Fail(source.ServerUnknown, only, "there is no such server in %s", places.ConfigDir)
	}
	return e, nil
}

func newMCPAct(g *globals, action, short string) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: action + " NAME", Short: short, Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.running(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				return fmt.Errorf("%w; start it with `garra serve`", adminapi.ErrNotRunning)
			}
			result, err := client.Act(c.Context(), args[0], action)
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(result)
			}
			return g.printAct(&result)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (g *globals) printAct(r *adminapi.RestartResult) error {
	fmt.Fprintf(g.out, "%s is %s", r.Name, r.State)
	if r.PID != nil {
		fmt.Fprintf(g.out, ", pid %d", *r.PID)
	}
	if r.Tools != nil {
		fmt.Fprintf(g.out, ", %d tools", *r.Tools)
	}
	fmt.Fprintln(g.out)
	if len(r.Env.Dropped) > 0 {
		fmt.Fprintf(g.out, "its environment is isolated now, although its entry inherits; dropped: %s\n",
			strings.Join(r.Env.Dropped, ", "))
	}
	return nil
}

func newMCPLogs(g *globals) *cobra.Command {
	asJSON, follow := false, false
	c := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server wrote to standard error", Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.running(c.Context())
			if err != nil {
				return err
			}
			if client == nil {
				return fmt.Errorf("%w, and it is what keeps logs; `garra mcp inspect %s` starts the server "+
					"and shows what it says", adminapi.ErrNotRunning, args[0])
			}
			return client.Logs(c.Context(), args[0], follow, func(l adminapi.LogLine) error {
				return g.printLog(l, asJSON)
			})
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on as lines come")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each line")
	return c
}

func (g *globals) printLog(l adminapi.LogLine, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintf(g.out, "%s %s\n", l.Time.Format("15:04:05.000"), printable(l.Line))
		return err
	}
	line, err := json.Marshal(struct {
		Time   any    `json:"time"`
		Server string `json:"server"`
		Line   string `json:"line"`
	}{l.Time, l.Server, l.Line})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.out, "%s\n", line)
	return err
}

// printable makes text of a server harmless on a terminal: control characters,
// with which it could draw over what garra says, become spaces.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
}
