// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
)

func newMCPLogs(g *globals) *cobra.Command {
	asJSON, follow := false, false
	c := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server wrote to standard error", Args: exactArgs(1),
		ValidArgsFunction: g.serverNames,
		Long: `Shows the last lines that a server wrote to standard error. The running gateway
keeps them, in memory only.

Exit codes: 1 for an unknown server, and when no gateway runs.`,
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
	c.Flags().BoolVar(&asJSON, "json", false, `print {"time", "server", "line"} for each line`)
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
	_, err = fmt.Fprintln(g.out, printableJSON(string(line)))
	return err
}
