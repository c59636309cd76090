// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
)

func newMCPTools(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "tools", Short: "List the tools of all servers, and which are allowed", Args: exactArgs(0),
		Long: `Lists the tools of all servers: the name that the server gives it, the name that
clients see at /mcp, whether they may call it, and why. Servers that start are waited
for; when no gateway runs, all are started for this and stopped again. Tools of a
server that can't be started are missing, which is said on standard error.`,
		RunE: func(c *cobra.Command, _ []string) error {
			tools, err := g.tools(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(map[string]any{"tools": tools})
			}
			list := g.table("SERVER", "TOOL", "EXPOSED AS", "ALLOWED", "REASON")
			for _, t := range tools {
				list.row(t.Server, t.Name, t.ExposedAs, strconv.FormatBool(t.Allowed), withRule(t.Reason, t.Rule))
			}
			return list.flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"tools": [...]}`)
	return c
}

// A toolLine is one tool of `mcp tools`.
type toolLine struct {
	Server    string `json:"server"`
	Name      string `json:"name"`
	ExposedAs string `json:"exposed_as"`
	Allowed   bool   `json:"allowed"`
	Reason    string `json:"reason"`
	Rule      string `json:"rule,omitempty"` // where it stands
}

// withRule is the reason of a decision with the place of its rule, if it has one.
func withRule(reason, rule string) string {
	if rule == "" {
		return reason
	}
	return reason + " (" + rule + ")"
}

// tools collects the tools of all servers; those of one that can't be started
// are missing, which is said on standard error.
func (g *globals) tools(ctx context.Context) ([]toolLine, error) {
	list, err := g.list(ctx)
	if err != nil {
		return nil, err
	}
	g.printLeftOut(list.LeftOut)
	details, err := g.details(ctx, list.Servers)
	if err != nil {
		return nil, err
	}
	tools := []toolLine{}
	for _, d := range details {
		for _, t := range d.Tools {
			tools = append(tools, toolLine{t.Server, t.Name, t.ExposedAs, t.Allowed, t.Reason, t.Rule})
		}
		if failure := notReady(&d); failure != nil {
			fmt.Fprintln(g.err, "garra: "+printableLines(failure.Error()))
		}
	}
	return tools, nil
}

// details inspects all servers at the same time, and waits for those that start.
func (g *globals) details(ctx context.Context, servers []gateway.ServerInfo) ([]gateway.ServerDetail, error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, err
	}
	if client != nil {
		return detailsOf(ctx, client, servers)
	}
	e, err := g.private(ctx, "", true)
	if err != nil {
		return nil, err
	}
	defer e.close(context.WithoutCancel(ctx))
	e.awaitAll(ctx)
	var details []gateway.ServerDetail
	for _, s := range servers {
		if d, ok := e.detail(s.Name); ok {
			details = append(details, d)
		}
	}
	return details, nil
}

// detailsOf asks the running gateway.
func detailsOf(
	ctx context.Context, client *adminapi.Client, servers []gateway.ServerInfo,
) ([]gateway.ServerDetail, error) {
	details := make([]gateway.ServerDetail, len(servers))
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		// Ends with its answer; all.Wait waits for it.
		all.Go(func() { details[i], errs[i] = client.Detail(ctx, s.Name, true) })
	}
	all.Wait()
	return details, errors.Join(errs...)
}
