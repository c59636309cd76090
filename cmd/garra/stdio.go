// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/internal/hangup"
)

func newStdio(g *globals) *cobra.Command {
	server := ""
	c := &cobra.Command{
		Use: "stdio", Short: "Serve one client over standard input and output", Args: exactArgs(0),
		Long: `Serves one client over standard input and output, for clients that start their
servers themselves. It is a bridge to the running gateway when there is one; else a
gateway of its own, which listens nowhere and ends with its client. Standard
output carries MCP messages only; the log goes to standard error.

When its client closes standard input, what was asked by then is still answered,
each request within the time that it has; then it ends with 0, at once when nothing
was asked. It ends at once, too, when nobody reads standard output any more, and on
SIGTERM with 0.

Exit codes: 1 when the server of --server does not exist, and when a gateway that
went away is not back after 30 seconds; 65 when a file cannot be parsed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			err := runStdio(c.Context(), g, server)
			switch cause := context.Cause(c.Context()); {
			case errors.Is(cause, errTerminated): // how a client ends its server
				return nil
			case cause != nil:
				return cause
			}
			return err
		},
	}
	c.Flags().StringVar(&server, "server", "", "serve the server of this `NAME` alone, under its own names")
	return c
}

// errUnread is the cause of the end of a command whose client is gone.
var errUnread = errors.New("nobody reads standard output")

// runStdio serves a client until one of both is done, and while standard output is
// read: a call that hangs would have nothing to write for long. Writing then is an
// error and not the end of the process, which has servers to stop.
func runStdio(ctx context.Context, g *globals, server string) error {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with ctx, or with the client; nobody waits for it
		if hangup.Wait(ctx, g.out) {
			cancel(errUnread)
		}
	}()
	err := serveStdio(ctx, g, server)
	if errors.Is(context.Cause(ctx), errUnread) {
		return nil
	}
	return err
}

func serveStdio(ctx context.Context, g *globals, server string) error {
	client, err := g.running(ctx)
	if err != nil {
		return err
	}
	if client != nil {
		return newBridge(client, server, g.log).run(ctx, g.in, g.out)
	}
	e, err := g.private(ctx, server, false)
	if err != nil {
		return err
	}
	stop := e.follow(ctx)
	err = e.gateway.ServePipe(ctx, g.in, g.out, gateway.PipeClient{Server: server, Principal: "local"})
	stop()
	e.close(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("serving standard input and output: %w", err)
	}
	return nil
}
