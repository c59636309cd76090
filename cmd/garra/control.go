// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/source"
)

func newMCPStart(g *globals) *cobra.Command {
	return newMCPAct(g, "start", "Start a server that was stopped",
		`Starts a server that was stopped, and waits until it is ready.`)
}

func newMCPStop(g *globals) *cobra.Command {
	return newMCPAct(g, "stop", "Stop a server until it is started again",
		`Stops a server with everything that it has started, and waits until it is gone.
It stays stopped, whatever is called, until it is started again.`)
}

// newMCPAct returns a command that asks the running gateway to do something to a
// server.
func newMCPAct(g *globals, action, short, long string) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: action + " NAME", Short: short, Args: exactArgs(1), ValidArgsFunction: g.serverNames,
		Long: long + `

Exit codes: 1 when it fails, and when no gateway runs.`,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := g.gatewayToAct(c.Context())
			if err != nil {
				return err
			}
			result, err := client.Act(c.Context(), args[0], action)
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(result)
			}
			g.printAct(&result)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"name", "state", "pid", "tools", "env"}`)
	return c
}

// gatewayToAct returns a client of the running gateway, without which there is nothing
// to act on.
func (g *globals) gatewayToAct(ctx context.Context) (*adminapi.Client, error) {
	client, err := g.running(ctx)
	if err == nil && client == nil {
		err = fmt.Errorf("%w; start it with `garra serve`", adminapi.ErrNotRunning)
	}
	return client, err
}

// printAct says what came of an action. A failure to write shows at the end.
func (g *globals) printAct(r *adminapi.RestartResult) {
	fmt.Fprintf(g.out, "%s is %s", r.Name, r.State)
	if r.PID != nil {
		fmt.Fprintf(g.out, ", pid %d", *r.PID)
	}
	if r.Tools != nil && r.State == source.Ready {
		fmt.Fprintf(g.out, ", %s", count(*r.Tools, "tool"))
	}
	fmt.Fprintln(g.out)
	if len(r.Env.Dropped) > 0 {
		fmt.Fprintf(g.out, "its environment is isolated now, although its entry inherits; dropped: %s\n",
			strings.Join(r.Env.Dropped, ", "))
	}
}
