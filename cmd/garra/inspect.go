// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/gateway"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/source"
)

func newMCPInspect(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "inspect NAME", Short: "Show everything about a server", Args: exactArgs(1),
		ValidArgsFunction: g.serverNames,
		Long: `Shows everything about a server: its state, environment (names and where each
value comes from, never values), the file that is run or the url, tools and what was
decided about each. When no gateway runs, the server is started for this and stopped
again.

Exit codes: 1 for an unknown server and one that cannot be started.`,
		RunE: func(c *cobra.Command, args []string) error {
			detail, failure := g.inspect(c.Context(), args[0])
			failure = beyondItself(failure, args[0])
			if detail == nil {
				return failure
			}
			if detail.LastError != nil {
				text := withoutInspect(*detail.LastError, args[0])
				detail.LastError = &text
			}
			shown := inspected{detail, g.auth(c.Context(), args[0])}
			if asJSON {
				return errors.Join(failure, g.writeJSON(shown))
			}
			return errors.Join(failure, g.printDetail(shown))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false,
		"print what mcp list has, tools, resources, prompts, last words and, of a server at a url, auth")
	return c
}

// inspect returns what is known of a server; with a failure of the server both
// results are there.
func (g *globals) inspect(ctx context.Context, name string) (*gateway.ServerDetail, error) {
	client, err := g.running(ctx)
	if err != nil {
		return nil, err
	}
	defer g.waitFor(name).stop()
	if client != nil {
		detail, err := client.Detail(ctx, name, true)
		if err != nil {
			return nil, err
		}
		return &detail, unstartable(&detail)
	}
	e, err := g.private(ctx, name, true)
	if err != nil {
		return nil, err
	}
	defer e.close(context.WithoutCancel(ctx))
	failure := e.gateway.Known(ctx, name)
	detail, ok := e.detail(name)
	switch {
	case !ok:
		return nil, failure
	case detail.State == source.Ready: // what is wrong with its lists is among its problems
		return &detail, nil
	}
	return &detail, failure
}

// beyondItself takes out of a failure the advice to do what has just been done.
func beyondItself(err error, name string) error {
	f, ok := errors.AsType[*source.Failure](err)
	if !ok {
		return err
	}
	next := *f
	next.Message, next.Fix = withoutInspect(f.Message, name), withoutInspect(f.Fix, name)
	return &next
}

func withoutInspect(text, name string) string {
	command := "`garra mcp inspect " + name + "`"
	for _, advice := range []string{
		"; see what " + command + " shows of it", "see what " + command + " shows of it", "see " + command + ", or ",
		"; see " + command, "see " + command,
	} {
		text = strings.ReplaceAll(text, advice, "")
	}
	return text
}

// notReady is the failure of a server that should run and doesn't.
func notReady(d *gateway.ServerDetail) error {
	switch d.State {
	case source.Failed, source.Parked, source.Backoff:
		text := "it is in state " + string(d.State)
		if d.LastError != nil {
			text += ": " + *d.LastError
		}
		return source.Fail(source.ServerFailed, d.Name, "%s", text)
	case source.Stopped, source.Starting, source.Ready, source.Stopping, source.Disabled:
	}
	return nil
}

// unstartable is the failure of a server that does not run, and would not if it
// were asked to.
func unstartable(d *gateway.ServerDetail) error {
	if d.State == source.Disabled {
		return source.Fail(source.ServerDisabled, d.Name, "it is disabled")
	}
	return notReady(d)
}

// An inspected is a server as `mcp inspect` shows it.
type inspected struct {
	*gateway.ServerDetail
	Auth *authInfo `json:"auth,omitempty"`
}

// printDetail prints a server for people.
func (g *globals) printDetail(d inspected) error {
	t := g.pairs()
	row := func(name, format string, args ...any) { t.row(name, fmt.Sprintf(format, args...)) }
	row("name", "%s (%s)", d.Name, d.Source)
	row("state", "%s", d.State)
	remote := d.Transport != string(mcpconfig.Stdio)
	if remote {
		row("transport", "%s", d.Transport)
		row("url", "%s", d.URL)
	}
	if d.PID != nil {
		row("pid", "%d", *d.PID)
	}
	for _, h := range d.Holders {
		pid := "no process"
		if h.PID != nil {
			pid = fmt.Sprintf("pid %d", *h.PID)
		}
		row("client's own", "%s, %s (%s)", h.State, pid, h.Holder)
	}
	if d.LastError != nil {
		row("last error", "%s", strings.ReplaceAll(*d.LastError, "\n", " / "))
	}
	if d.ProtocolVersion != "" {
		row("protocol", "%s", d.ProtocolVersion)
	}
	if d.Auth != nil && d.Auth.LoggedIn {
		row("logged in", "at %s", strings.Join(append([]string{d.Auth.Issuer}, d.Auth.Scopes...), " "))
	}
	if d.Command != nil {
		row("runs", "%s", d.Command.Path)
		row("in", "%s", d.Command.Dir)
		if len(d.Command.SearchPath) > 0 {
			row("searched", "%s", strings.Join(d.Command.SearchPath, ", "))
		}
	}
	if !remote { // one that garra doesn't run has none
		row("environment", "%s", strings.Join(append([]string{string(d.Env.Mode)}, withOrigins(d.Env)...), ", "))
		sandboxRows(&d.Sandbox, row)
	}
	if len(d.Secrets) > 0 {
		row("secrets", "%s", strings.Join(d.Secrets, ", "))
	}
	limitRows(d.ServerDetail, row)
	if d.ToolsMode == string(mcpconfig.ToolsSearch) {
		row("tools", "searched: clients of all servers find them by find_tool")
	}
	if d.Sharing != string(mcpconfig.SharingShared) {
		row("sharing", "%s: a process for each client", d.Sharing)
	}
	row("resources", "%d", len(d.Resources))
	row("prompts", "%d", len(d.Prompts))
	for _, problem := range d.Problems {
		row("problem", "%s", problem)
	}
	for _, rule := range d.UnknownTools {
		row("problem", "%s:%d: no tool is named %q", rule.File, rule.Line, rule.Pattern)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := g.printTools(d.Tools); err != nil {
		return err
	}
	g.printStops(d.Stops)
	if len(d.StderrTail) > 0 {
		fmt.Fprintln(g.out, "\nlast lines on standard error")
		for _, line := range d.StderrTail {
			fmt.Fprintln(g.out, "  "+printable(line))
		}
	}
	return nil
}

// limitRows are what a server may use, and variables that it doesn't get.
func limitRows(d *gateway.ServerDetail, row func(name, format string, args ...any)) {
	if text := memoryText(d.Memory); text != "" {
		row("memory", "%s", text)
	}
	for _, text := range d.UnenforcedLimits {
		row("not enforced", "%s", text)
	}
	if len(d.Env.Dropped) > 0 {
		row("dropped", "%s", strings.Join(d.Env.Dropped, ", "))
	}
}

// sandboxRows are what confines a server, and what it may touch.
func sandboxRows(s *gateway.SandboxInfo, row func(name, format string, args ...any)) {
	row("sandbox", "%s (asked for: %s)", s.Effective, s.Mode)
	if s.Effective == "off" {
		return
	}
	row("network", "%s", s.Network)
	if len(s.Read) > 0 {
		row("reads", "%s", strings.Join(s.Read, ", "))
	}
	if len(s.Write) > 0 {
		row("writes", "%s", strings.Join(s.Write, ", "))
	}
	for _, text := range s.Unenforced {
		row("not enforced", "%s", text)
	}
}

// printStops prints how the last runs of a server ended.
func (g *globals) printStops(stops []source.Stop) {
	if len(stops) == 0 {
		return
	}
	fmt.Fprintln(g.out, "\nlast ends")
	for _, stop := range stops {
		message, _, _ := strings.Cut(stop.Message, "\n")
		fmt.Fprintf(g.out, "  %s  after %s, %s: %s\n", stop.Time.Local().Format(time.DateTime),
			time.Duration(stop.Uptime*float64(time.Second)).Round(time.Millisecond), stop.Cause, printable(message))
	}
}

// memoryText says what a server uses, may use and is held to that by; it is empty when
// there is nothing to say.
func memoryText(m gateway.MemoryInfo) string {
	var words []string
	if m.UsedMB != nil {
		words = append(words, fmt.Sprintf("%d MB used", *m.UsedMB))
	}
	if m.LimitMB != nil {
		words = append(words, fmt.Sprintf("at most %d MB", *m.LimitMB))
	}
	if len(m.EnforcedBy) > 0 {
		words = append(words, "enforced by "+strings.Join(m.EnforcedBy, ", "))
	}
	return strings.Join(words, ", ")
}

// withOrigins names variables with where their values come from.
func withOrigins(env gateway.EnvInfo) []string {
	list := make([]string, len(env.Names))
	for i, name := range env.Names {
		list[i] = name
		if from := env.From[name]; from != "" {
			list[i] += " (" + from + ")"
		}
	}
	return list
}

func (g *globals) printTools(tools []gateway.ToolInfo) error {
	fmt.Fprintf(g.out, "\ntools (%d)\n", len(tools))
	list := g.table()
	for _, t := range tools {
		allowed := "allowed"
		if !t.Allowed {
			allowed = "not allowed: " + withRule(t.Reason, t.Rule)
		}
		description, _, _ := strings.Cut(t.Description, "\n")
		list.row("  "+t.Name, t.ExposedAs, allowed, description)
	}
	return list.flush()
}
