// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/garraia/garra/internal/place"
)

// streams are the standard streams of a command. Data goes to out, everything
// else to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// globals are the flags of every command, and what follows from them.
type globals struct {
	streams
	configDir string
	logLevel  string
	logFormat string
}

// run is the whole program but for its exit.
func run(args []string, std streams) int {
	ctx, stop := interruptible()
	defer stop()
	root := newRoot(&globals{streams: std})
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	if err != nil && context.Cause(ctx) != nil && !hasOwnCode(err) {
		err = context.Cause(ctx)
	}
	if e, ok := errors.AsType[*exitError](err); err != nil && (!ok || e.err != nil) {
		fmt.Fprintln(std.err, "garra: "+strings.TrimSpace(err.Error()))
	}
	return exitCode(err)
}

func hasOwnCode(err error) bool {
	_, ok := errors.AsType[*exitError](err)
	return ok
}

// interruptible returns a context that the first SIGINT or SIGTERM ends; the
// second one kills, since the handler is gone then.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the first signal, or with the program
		sig := <-ch
		signal.Stop(ch)
		if sig == os.Interrupt {
			cancel(errInterrupted)
		} else {
			cancel(errTerminated)
		}
	}()
	return ctx, func() { signal.Stop(ch) }
}

// errTerminated is the cause of a command's context after SIGTERM.
var errTerminated = errors.New("terminated")

// newRoot returns the command tree.
func newRoot(g *globals) *cobra.Command {
	root := &cobra.Command{
		Use:   "garra",
		Short: "A gateway that runs MCP servers and serves them as one",
		Long: `garra runs the MCP servers of mcp.json and config.yml, each in a clean
environment, keeps them running, and serves all of them as one MCP server over
streamable HTTP and stdio.

Exit codes: 0 done, 1 failed, 2 a check found errors or the command line is
wrong, 6 refused by policy, 65 a file cannot be parsed at all, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.configDir, "config-dir", "",
		"configuration folder (default $GARRAIA_CONFIG_DIR, then ~/.config/garraia)")
	flags.StringVar(&g.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&g.logFormat, "log-format", "", "console or json (default console on a terminal)")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(err) })
	root.AddCommand(
		newServe(g), newStdio(g), newMCP(g), newConfig(g), newToken(g), newVersion(g), newExampleServer(),
	)
	return root
}

// noArgs, exactArgs and maximumArgs are cobra's, with usage errors of ours.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(c, args); err != nil {
			return usageError(fmt.Errorf("%w; usage: %s", err, c.UseLine()))
		}
		return nil
	}
}

// group returns a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(fmt.Errorf("unknown command %q; see `garra %s --help`", args[0], c.Name()))
			}
			return c.Help()
		},
	}
	c.AddCommand(commands...)
	return c
}

// places returns where garra's files are.
func (g *globals) places() (place.Places, error) { return place.Find(g.configDir, os.Getenv) }

// logger returns the log, which goes to standard error.
func (g *globals) logger() (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(g.logLevel)
	if err != nil || g.logLevel == "" {
		err := fmt.Errorf("--log-level %q is none of debug, info, warn, error", g.logLevel)
		return zerolog.Logger{}, usageError(err)
	}
	var w io.Writer
	switch {
	case g.logFormat == "json", g.logFormat == "" && !isTerminal(g.err):
		w = g.err
	case g.logFormat == "console", g.logFormat == "":
		w = zerolog.ConsoleWriter{
			Out: g.err, TimeFormat: "15:04:05", NoColor: !isTerminal(g.err) || os.Getenv("NO_COLOR") != "",
		}
	default:
		return zerolog.Logger{}, usageError(fmt.Errorf("--log-format %q is neither console nor json", g.logFormat))
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(level).With().Timestamp().Logger(), nil
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
