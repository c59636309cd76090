// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/source"
)

func newMCPTools(g *globals) *cobra.Command {
	asJSON, patience := false, 0.0
	c := &cobra.Command{
		Use: "tools", Short: "List the tools of all servers, and which are allowed", Args: exactArgs(0),
		Long: `Lists the tools of all servers: the name that the server gives it, the name that
clients see at /mcp, whether they may call it, and why, and "searched" for one that they
find by find_tool. Servers that start are waited for, at most as long as --wait says;
when no gateway runs, all are started for this and stopped again. Tools of a server that
can't be started, or is not ready by then, are missing, which is said on standard error.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if patience <= 0 {
				return usageError(fmt.Errorf("--wait %g is no time to wait; give a number of seconds", patience))
			}
			tools, err := g.tools(c.Context(), time.Duration(patience*float64(time.Second)))
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(map[string]any{"tools": tools})
			}
			return g.printToolLines(tools)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"tools": [...]}`)
	c.Flags().Float64Var(&patience, "wait", 60, "the most `SECONDS` to wait for servers that start")
	return c
}

// A toolLine is one tool of `mcp tools`.
type toolLine struct {
	Server    string `json:"server"`
	Name      string `json:"name"`
	ExposedAs string `json:"exposed_as"`
	Allowed   bool   `json:"allowed"`
	Searched  bool   `json:"searched,omitempty"` // clients find it by asking
	Reason    string `json:"reason"`
	Rule      string `json:"rule,omitempty"` // where it stands
}

// printToolLines has a column for what is searched when anything is.
func (g *globals) printToolLines(tools []toolLine) error {
	header := []string{"SERVER", "TOOL", "EXPOSED AS", "ALLOWED", "REASON"}
	searched := slices.ContainsFunc(tools, func(t toolLine) bool { return t.Searched })
	if searched {
		header = append(header, "LISTED")
	}
	list := g.table(header...)
	for _, t := range tools {
		row := []string{t.Server, t.Name, t.ExposedAs, strconv.FormatBool(t.Allowed), withRule(t.Reason, t.Rule)}
		switch {
		case t.Searched:
			row = append(row, "searched")
		case searched && t.Allowed:
			row = append(row, "listed")
		case searched:
			row = append(row, "-")
		}
		list.row(row...)
	}
	return list.flush()
}

// withRule is the reason of a decision with the place of its rule, if it has one.
func withRule(reason, rule string) string {
	if rule == "" {
		return reason
	}
	return reason + " (" + rule + ")"
}

// tools collects the tools of all servers; those of one that can't be started, or
// isn't ready in time, are missing, which is said on standard error.
func (g *globals) tools(ctx context.Context, patience time.Duration) ([]toolLine, error) {
	list, err := g.list(ctx)
	if err != nil {
		return nil, err
	}
	details, err := g.details(ctx, list.Servers, patience)
	if err != nil {
		return nil, err
	}
	tools := []toolLine{}
	for _, d := range details {
		for _, t := range d.Tools {
			tools = append(tools, toolLine{
				t.Server, t.Name, t.ExposedAs, t.Allowed, t.Searched, t.Reason, t.Rule,
			})
		}
		failure := notReady(&d.ServerDetail)
		if failure == nil && d.late {
			failure = lateFailure(&d.ServerDetail, patience)
		}
		if failure != nil {
			fmt.Fprintln(g.err, "garra: "+printableLines(failure.Error()))
		}
	}
	return tools, nil
}

// A knownServer is what is known of a server; late is one for which the time to wait
// was too short.
type knownServer struct {
	gateway.ServerDetail
	late bool
}

// lateFailure says that a server's tools are missing, since it was not ready in time.
func lateFailure(d *gateway.ServerDetail, patience time.Duration) error {
	f := source.Fail(source.CallTimeout, d.Name, "it is in state %s after %s, and its tools are missing here",
		d.State, patience)
	f.Fix = "see `garra mcp inspect " + d.Name + "`, or wait longer with --wait"
	return f
}

// details inspects all servers at the same time, and waits for those that start.
func (g *globals) details(
	ctx context.Context, servers []gateway.ServerInfo, patience time.Duration,
) ([]knownServer, error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, err
	}
	if client != nil {
		return g.detailsOf(ctx, client, servers, patience)
	}
	e, err := g.private(ctx, "", true)
	if err != nil {
		return nil, err
	}
	defer e.close(context.WithoutCancel(ctx))
	late := g.awaitAll(ctx, e, patience)
	var details []knownServer
	for _, s := range servers {
		if d, ok := e.detail(s.Name); ok {
			details = append(details, knownServer{d, slices.Contains(late, s.Name)})
		}
	}
	return details, context.Cause(ctx)
}

// awaitAll waits until what each server of a private gateway offers is known, or that
// it can't be. It returns those for which the time was too short.
func (g *globals) awaitAll(ctx context.Context, e *engine, patience time.Duration) []string {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	names := e.names()
	waiting := g.waitFor(names...)
	defer waiting.stop()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { // ends with what is known of the server, or with limited; all.Wait waits for it
			if err := e.gateway.Known(limited, name); err != nil {
				e.log.Debug().Err(err).Msg("not inspected")
				if limited.Err() != nil {
					return
				}
			}
			waiting.got(name)
		})
	}
	all.Wait()
	return waiting.left()
}

// detailsOf asks the running gateway.
func (g *globals) detailsOf(
	ctx context.Context, client *adminapi.Client, servers []gateway.ServerInfo, patience time.Duration,
) ([]knownServer, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	details := make([]knownServer, len(servers))
	errs := make([]error, len(servers))
	waiting := g.waitFor()
	defer waiting.stop()
	var all sync.WaitGroup
	for i, s := range servers {
		waiting.add(s.Name)
		all.Go(func() { // ends with its answer; all.Wait waits for it
			d := &details[i]
			if d.ServerDetail, errs[i] = client.Detail(limited, s.Name, true); limited.Err() != nil {
				d.late = true
				d.ServerDetail, errs[i] = client.Detail(ctx, s.Name, false)
			}
			waiting.got(s.Name)
		})
	}
	all.Wait()
	return details, errors.Join(errs...)
}
