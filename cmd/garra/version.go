// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/protocol"
)

func newVersion(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactArgs(0),
		Long: `Prints the version, and the latest MCP revision that garra speaks.`,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return g.writeJSON(map[string]string{
					"version": version.String(), "go": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH, "mcp": string(protocol.LatestStateless),
				})
			}
			fmt.Fprintf(g.out, "garra %s (%s/%s, %s, MCP up to %s)\n", version.String(),
				runtime.GOOS, runtime.GOARCH, runtime.Version(), protocol.LatestStateless)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"version", "go", "platform", "mcp"}`)
	return c
}
