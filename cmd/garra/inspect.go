// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/garraia/garra/gateway"
)

// printDetail prints a server for people.
func (g *globals) printDetail(d *gateway.ServerDetail) error {
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	row("name", "%s (%s)", d.Name, d.Source)
	row("state", "%s", d.State)
	if d.PID != nil {
		row("pid", "%d", *d.PID)
	}
	if d.LastError != nil {
		row("last error", "%s", strings.ReplaceAll(*d.LastError, "\n", " / "))
	}
	if d.ProtocolVersion != "" {
		row("protocol", "%s", d.ProtocolVersion)
	}
	if d.Command != nil {
		row("runs", "%s", d.Command.Path)
		row("in", "%s", d.Command.Dir)
		row("searched", "%s", strings.Join(d.Command.SearchPath, ", "))
	}
	row("environment", "%s: %s", d.Env.Mode, strings.Join(withOrigins(d.Env), ", "))
	if len(d.Env.Dropped) > 0 {
		row("dropped", "%s", strings.Join(d.Env.Dropped, ", "))
	}
	row("resources", "%d", len(d.Resources))
	row("prompts", "%d", len(d.Prompts))
	for _, problem := range d.Problems {
		row("problem", "%s", problem)
	}
	for _, rule := range d.UnknownTools {
		row("problem", "%s:%d: no tool is named %q", rule.File, rule.Line, rule.Pattern)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := g.printTools(d.Tools); err != nil {
		return err
	}
	if len(d.StderrTail) > 0 {
		fmt.Fprintln(g.out, "\nlast lines on standard error")
		for _, line := range d.StderrTail {
			fmt.Fprintln(g.out, "  "+printable(line))
		}
	}
	return nil
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
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	for _, t := range tools {
		allowed := "allowed"
		if !t.Allowed {
			allowed = "not allowed: " + t.Reason
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", printable(t.Name), t.ExposedAs, allowed, shorten(printable(t.Description)))
	}
	return w.Flush()
}

// shorten cuts a description for a table.
func shorten(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
