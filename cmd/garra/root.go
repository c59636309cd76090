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
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/garraia/garra/internal/nodump"
	"github.com/garraia/garra/internal/pidone"
	"github.com/garraia/garra/internal/place"
	"github.com/garraia/garra/internal/systemd"
	"github.com/garraia/garra/internal/version"
	"github.com/garraia/garra/redact"
)

// streams are the standard streams of a command. Data goes to out, everything
// else to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// A pace is what tests make faster, or slower.
type pace struct {
	quiet      time.Duration // how long a command waits for servers before it says so
	workFactor int           // of vaults that are written, as in vault.Options
}

// globals are the flags of every command, and what follows from them.
type globals struct {
	streams
	configDir string
	logLevel  string
	logFormat string
	pace
	given   []byte   // the vault's passphrase, if the environment had it
	args    []string // of the command line, without the program's name
	pid     int      // by which those who started this process know it
	manager *systemd.Manager
	secrets redact.Set // what servers were given, and nothing may show

	begun bool           // the command line was right, and its command runs
	log   zerolog.Logger // to standard error; set when begun
}

// run is the whole program but for its exit.
func run(args []string, std streams, pace pace) int {
	given := takePassphrase() // before anything is started that would inherit it
	pid := pidone.PID()
	manager := systemd.Take(pid)
	_ = nodump.Set() // only now: after that the own environment can't be overwritten any more
	ctx, stop := interruptible()
	defer stop()
	said := newLossyWriter(std.err, lossyBytes)
	defer said.close(lossyGrace)
	std.err = said
	out := &output{Writer: std.out}
	std.out = out
	g := &globals{streams: std, pace: pace, given: given, args: args, pid: pid, manager: manager}
	root := newRoot(g)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !g.begun {
		err = usageError(err)
	}
	if err != nil && context.Cause(ctx) != nil && !hasOwnCode(err) {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = out.failure()
	}
	explain(std.err, command, err)
	return exitCode(err)
}

func hasOwnCode(err error) bool {
	_, ok := errors.AsType[*exitError](err)
	return ok
}

// explain says what went wrong, unless the command has said it. Errors may quote
// servers, so what a terminal would obey is taken out.
func explain(w io.Writer, command *cobra.Command, err error) {
	e, own := errors.AsType[*exitError](err)
	if err == nil || own && e.err == nil {
		return
	}
	fmt.Fprintln(w, "garra: "+printableLines(strings.TrimSpace(err.Error())))
	if own && e.code == exitFindings {
		fmt.Fprintf(w, "see `%s --help`\n", command.CommandPath())
	}
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
	root := group("garra", "A gateway that runs MCP servers and serves them as one",
		newServe(g), newStdio(g), newMCP(g), newConfig(g), newVault(g), newToken(g), newVersion(g), newCompletion(g),
		newExampleServer())
	root.Long = `garra runs the MCP servers of mcp.json and config.yml, each in a clean
environment, keeps them running, and serves all of them as one MCP server over
streamable HTTP and stdio.

Exit codes: 0 done, 1 failed, 2 a check found errors or the command line is
wrong, 4 the vault is locked or the passphrase is wrong, 6 refused by policy, 65 a
file cannot be parsed at all, 130 interrupted.`
	root.Version = version.String()
	root.SetVersionTemplate("garra {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(flagError)
	// A group is no command of its own, although it can be run.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}",
		"{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.PersistentPreRunE = func(*cobra.Command, []string) (err error) {
		if g.log, err = g.logger(); err == nil {
			g.begun = true
			g.tellLosses()
		}
		return err
	}
	flags := root.PersistentFlags()
	flags.StringVar(&g.configDir, "config-dir", "",
		"the configuration `DIR` (default $GARRAIA_CONFIG_DIR, else garraia in $XDG_CONFIG_HOME or ~/.config)")
	flags.StringVar(&g.logLevel, "log-level", "info", "the least `LEVEL` that is logged: debug, info, warn or error")
	flags.StringVar(&g.logFormat, "log-format", "", "the `FORMAT` of the log: console or json "+
		"(default console on a terminal, else json)")
	return root
}

// group returns a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(unknownCommand(c, args[0]))
			}
			return c.Help()
		},
	}
	c.AddCommand(commands...)
	return c
}

// newHelp is cobra's help command, which must not succeed for what isn't there.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show how a command is used",
		RunE: func(c *cobra.Command, args []string) error {
			found, rest, err := c.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(found, rest[0])
			}
			if err != nil {
				return usageError(err)
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}

func unknownCommand(c *cobra.Command, name string) error {
	if like := c.SuggestionsFor(name); len(like) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %q?", name, like[0])
	}
	return fmt.Errorf("unknown command %q", name)
}

// flagError names an unknown command before a flag that only it would have.
func flagError(c *cobra.Command, err error) error {
	if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	return err
}

// exactArgs wants as many arguments as the command names.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		name, wanted, _ := strings.Cut(c.Use, " ")
		if n == 0 {
			return fmt.Errorf("%s takes no argument, and got %q", name, args[0])
		}
		return fmt.Errorf("%s takes %s, and got %s", name, wanted, count(len(args), "argument"))
	}
}

// places returns where garra's files are.
func (g *globals) places() (place.Places, error) { return place.Find(g.configDir, os.Getenv) }

// logger returns the log that the flags ask for.
func (g *globals) logger() (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(g.logLevel)
	if err != nil || g.logLevel == "" {
		return zerolog.Logger{}, fmt.Errorf("--log-level %q is none of debug, info, warn, error", g.logLevel)
	}
	w := io.Writer(redacted{&g.secrets, g.err})
	switch {
	case g.logFormat == "json", g.logFormat == "" && !isTerminal(g.err):
		w = jsonLog{w}
	case g.logFormat == "console", g.logFormat == "":
		w = zerolog.ConsoleWriter{
			Out: w, TimeFormat: "15:04:05", NoColor: !isTerminal(g.err) || os.Getenv("NO_COLOR") != "",
			FormatMessage: func(message any) string { return printableLines(fmt.Sprint(message)) },
		}
	default:
		return zerolog.Logger{}, fmt.Errorf("--log-format %q is neither console nor json", g.logFormat)
	}
	// Each event is one write, and standard error takes those of several goroutines.
	return zerolog.New(w).Level(level).With().Timestamp().Logger(), nil
}

// A redacted writer takes secrets out of what is written, each time for itself.
type redacted struct {
	secrets *redact.Set
	out     io.Writer
}

// Write implements io.Writer.
func (r redacted) Write(p []byte) (int, error) {
	clean, _ := r.secrets.Text(p)
	if _, err := r.out.Write(clean); err != nil {
		return 0, err
	}
	return len(p), nil
}

// tellLosses has the log tell what standard error did not take of it.
func (g *globals) tellLosses() {
	if l, ok := g.err.(*lossyWriter); ok {
		l.onLoss(func(lines int) {
			g.log.Error().Int("dropped", lines).Msg("lines were dropped, since standard error was not read")
		})
	}
}
