// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/mcpconfig"
)

func newConfig(g *globals) *cobra.Command {
	return group("config", "Check, show and describe the configuration",
		newConfigCheck(g), newConfigShow(g), newConfigSchema(g), newConfigPath(g))
}

// A checkReport is the outcome of `config check`.
type checkReport struct {
	OK       bool               `json:"ok"`
	ExitCode int                `json:"exit_code"`
	Files    []string           `json:"files"`
	Servers  int                `json:"servers"`
	Findings mcpconfig.Findings `json:"findings"`
}

func newConfigCheck(g *globals) *cobra.Command {
	strict, asJSON := false, false
	c := &cobra.Command{
		Use: "check", Short: "Check mcp.json and config.yml; starts nothing", Args: exactArgs(0),
		Long: `Checks mcp.json and config.yml with the loader that serve uses, and starts
nothing. Warns of commands, folders, env files and variables that are not there in
this environment; serve may have another one. While a gateway runs, tool lists are
compared with the tools that there are.

Exit codes: 0 fine, 2 errors were found (with --strict, warnings too), 65 a file
cannot be parsed at all.`,
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := g.check(c.Context(), strict)
			if err != nil {
				return err
			}
			if asJSON {
				err = g.writeJSON(report)
			} else {
				err = g.printReport(report)
			}
			if err != nil || report.ExitCode == exitDone {
				return err
			}
			return &exitError{report.ExitCode, nil}
		},
	}
	c.Flags().BoolVar(&strict, "strict", false, "fail on warnings too")
	c.Flags().BoolVar(&asJSON, "json", false, `print {"ok", "exit_code", "files", "servers", "findings"}`)
	return c
}

func (g *globals) check(ctx context.Context, strict bool) (*checkReport, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	config, err := mcpconfig.Load(places.ConfigDir)
	if err != nil {
		return nil, err
	}
	report := &checkReport{Files: []string{}, Servers: len(config.Servers)}
	for _, f := range config.Files {
		if f.Exists {
			report.Files = append(report.Files, f.Path)
		}
	}
	unknown, err := g.unknownTools(ctx)
	if err != nil {
		return nil, err
	}
	held, err := g.checkedSecrets(ctx, places, &config.Settings)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	remembered, err := readIsolated(places)
	if err != nil {
		return nil, err
	}
	found := remembered.correct(config).With(config.Unavailable(held.Check))
	report.Findings = found.With(startFindings(ctx, config, found, held)).With(unknown)
	if report.Findings == nil {
		report.Findings = mcpconfig.Findings{}
	}
	failing := report.Findings.Count(mcpconfig.Error)
	if strict {
		failing += report.Findings.Count(mcpconfig.Warning)
	}
	switch {
	case len(config.Unparsable()) > 0:
		report.ExitCode = exitUnparsable
	case failing > 0:
		report.ExitCode = exitFindings
	}
	report.OK = report.ExitCode == exitDone
	return report, nil
}

// unknownTools asks the running gateway, if there is one, for rules that no
// tool bears.
func (g *globals) unknownTools(ctx context.Context) (findings mcpconfig.Findings, err error) {
	client, err := g.running(ctx)
	if client == nil || err != nil {
		return nil, err
	}
	list, err := client.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range list.Servers {
		detail, err := client.Detail(ctx, s.Name, false)
		if err != nil {
			return nil, err
		}
		for _, rule := range detail.UnknownTools {
			findings = append(findings, mcpconfig.Finding{
				Severity: mcpconfig.Warning, Code: mcpconfig.CodeToolsUnknownName,
				File: rule.File, Line: rule.Line, Column: rule.Column, Server: s.Name,
				Message: fmt.Sprintf("%s is %q, but the server has no such tool", rule.Field, rule.Pattern),
				Fix:     "see its tools with `garra mcp inspect " + s.Name + "`",
			})
		}
	}
	return findings, nil
}

func (g *globals) printReport(r *checkReport) error {
	for _, f := range r.Findings {
		fmt.Fprintf(g.out, "%s [%s] %s\n", f.Severity, f.Code, printable(findingText(f)))
	}
	_, err := fmt.Fprintf(g.out, "%s in %s: %s, %s, %s\n",
		count(r.Servers, "server"), count(len(r.Files), "file"), count(r.Findings.Count(mcpconfig.Error), "error"),
		count(r.Findings.Count(mcpconfig.Warning), "warning"), count(r.Findings.Count(mcpconfig.Info), "note"))
	return err
}

func newConfigSchema(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of mcp.json", Args: exactArgs(0),
		Long: `Prints the JSON Schema of mcp.json, for editors that complete and check it.`,
		RunE: func(*cobra.Command, []string) error {
			_, err := g.out.Write(mcpconfig.Schema())
			return err
		},
	}
}

func newConfigPath(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "path", Short: "Print where garra's files are", Args: exactArgs(0),
		Long: `Prints the configuration folder, the state folder, and in that the folder and the
socket of the gateway that runs for this configuration. They need not exist.`,
		RunE: func(*cobra.Command, []string) error {
			p, err := g.places()
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(p)
			}
			t := g.pairs()
			t.row("configuration", p.ConfigDir)
			t.row("state", p.StateDir)
			t.row("run", p.RunDir)
			t.row("socket", p.Socket)
			return t.flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false,
		`print {"config_dir", "state_dir", "run_dir", "socket", "vault", "audit_dir"}`)
	return c
}
