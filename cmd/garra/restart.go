// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/source"
)

func newMCPRestart(g *globals) *cobra.Command {
	all, rolling := false, false
	c := newMCPAct(g, "restart", "Restart a server, or all, with an isolated environment",
		`Stops a server, starts it and waits until it is ready. A server whose entry says
inheritEnv gets an isolated environment from then on, with and without a running
gateway, until its entry changes.

With --all every server is restarted at the same time, but for those that are disabled or
stopped. With --rolling it is one after the other, in the order of their names: each is
waited for until it is ready, and the first that ran before and doesn't come back ends
it. What was left alone, and what was not restarted, is said on standard error.`)
	c.Use = "restart NAME | --all [--rolling]"
	one, forOne := c.Args, c.RunE
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case all && len(args) > 0:
			return fmt.Errorf("--all takes no name, and got %q", args[0])
		case rolling && !all:
			return errors.New("--rolling needs --all")
		case all:
			return nil
		}
		return one(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if !all {
			return forOne(c, args)
		}
		client, err := g.gatewayToAct(c.Context())
		if err != nil {
			return err
		}
		asJSON, err := c.Flags().GetBool("json")
		if err != nil {
			return err
		}
		r := &restart{g: g, client: client, asJSON: asJSON, results: []adminapi.RestartResult{}}
		return r.run(c.Context(), rolling)
	}
	c.Flags().BoolVar(&all, "all", false, "restart every server that is neither disabled nor stopped")
	c.Flags().BoolVar(&rolling, "rolling", false, "one after the other, each when the one before is ready")
	c.Flags().Lookup("json").Usage += ", with --all a list of these"
	return c
}

// A restart is one of all servers.
type restart struct {
	g      *globals
	client *adminapi.Client
	asJSON bool

	mu      sync.Mutex // guards all below, and what is printed meanwhile
	results []adminapi.RestartResult
	lost    []string // servers that did not come back
}

// run restarts all servers that are wanted. Its error names those that did not come
// back, and those whose turn did not come.
func (r *restart) run(ctx context.Context, rolling bool) error {
	list, err := r.client.List(ctx)
	if err != nil {
		return err
	}
	var wanted []gateway.ServerInfo
	for _, server := range list.Servers {
		if server.State == source.Disabled || server.State == source.Stopped {
			fmt.Fprintf(r.g.err, "garra: %s is %s and stays so\n", server.Name, server.State)
			continue
		}
		wanted = append(wanted, server)
	}
	var untouched []string
	if rolling {
		untouched = r.inTurn(ctx, wanted)
	} else {
		r.atOnce(ctx, wanted)
	}
	if r.asJSON {
		if err := r.g.writeJSON(r.results); err != nil {
			return err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return r.verdict(len(wanted), untouched)
}

// atOnce restarts servers at the same time.
func (r *restart) atOnce(ctx context.Context, servers []gateway.ServerInfo) {
	var running sync.WaitGroup
	for _, server := range servers {
		running.Go(func() { r.one(ctx, server.Name) }) // ends with the gateway's answer, or with ctx
	}
	running.Wait()
	slices.SortFunc(r.results, func(a, b adminapi.RestartResult) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(r.lost)
}

// inTurn restarts one server after the other, and returns those whose turn did not
// come. One that did not run before proves nothing by not running after.
func (r *restart) inTurn(ctx context.Context, servers []gateway.ServerInfo) (untouched []string) {
	stopped := false
	for _, server := range servers {
		if stopped || ctx.Err() != nil {
			untouched = append(untouched, server.Name)
			continue
		}
		ran := server.State == source.Ready || server.State == source.Starting
		stopped = !r.one(ctx, server.Name) && ran
	}
	return untouched
}

// one restarts a server and says what came of it.
func (r *restart) one(ctx context.Context, name string) (back bool) {
	result, err := r.client.Act(ctx, name, "restart")
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.lost = append(r.lost, name)
		fmt.Fprintln(r.g.err, "garra: "+printableLines(err.Error()))
		return false
	}
	r.results = append(r.results, result)
	if !r.asJSON {
		r.g.printAct(&result)
	}
	return true
}

// verdict is the error of a restart, nil when all came back.
func (r *restart) verdict(wanted int, untouched []string) error {
	if len(r.lost) == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %s did not come back: %s", len(r.lost), count(wanted, "server"),
		strings.Join(r.lost, ", "))
	if len(untouched) > 0 {
		text += "; not restarted: " + strings.Join(untouched, ", ")
	}
	return errors.New(text)
}
