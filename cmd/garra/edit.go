// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
	"github.com/garraia/garra/internal/edits"
	"github.com/garraia/garra/mcpconfig"
	"github.com/garraia/garra/vault"
)

// An entryDraft is what the flags of `mcp add` say of a server.
type entryDraft struct {
	whole   string
	url     string
	headers []string
	env     []string
	envFile string
	cwd     string
	allowed []string
	off     bool
	command []string

	plaintext bool
	asJSON    bool
}

func newMCPAdd(g *globals) *cobra.Command {
	d := &entryDraft{}
	c := &cobra.Command{
		Use: "add NAME [flags] -- COMMAND [ARG...]", Short: "Add a server to mcp.json",
		Args: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); len(args) == 0 || dash != 1 && len(args) > 1 {
				return errors.New("add takes a name, and a command behind --")
			}
			return nil
		},
		Long: `Adds a server to mcp.json: the command behind --, or --url, or the whole entry with
--entry. Secrets among its values go to the vault, and the file gets references to them.
Without a vault they are refused, unless --allow-plaintext is given.

A running gateway starts the server at once.

Exit codes: 1 when there is a server of that name, or the entry is not valid; 4 when the
vault is locked.`,
		RunE: func(c *cobra.Command, args []string) error {
			d.command = args[1:]
			return g.addServer(c.Context(), args[0], d)
		},
	}
	f := c.Flags()
	f.StringVar(&d.whole, "entry", "", "the `ENTRY` in JSON, or @FILE with it, or - for standard input")
	f.StringVar(&d.url, "url", "", "the `ADDRESS` of a server at a url")
	f.StringArrayVar(&d.headers, "header", nil, "a `HEADER`, as \"Name: value\", for a server at a url; repeatable")
	f.StringArrayVar(&d.env, "env", nil, "a variable, as `NAME=VALUE`; repeatable. Others can read a command line: "+
		"a reference, such as NAME=vault:KEY, keeps a secret off it")
	f.StringVar(&d.envFile, "env-file", "", "a dotenv `FILE`")
	f.StringVar(&d.cwd, "cwd", "", "the `FOLDER` to run in")
	f.StringSliceVar(&d.allowed, "allowed-tool", nil, "a `TOOL` that may be used, name or glob; repeatable")
	f.BoolVar(&d.off, "disabled", false, "don't start it")
	f.BoolVar(&d.plaintext, "allow-plaintext", false, "let secrets stand in the file where there is no vault")
	f.BoolVar(&d.asJSON, "json", false, `print {"name", ..., "moved": [{"field", "key"}]}`)
	return c
}

// fields is the entry as a JSON object.
func (d *entryDraft) fields(g *globals) ([]byte, error) {
	if d.whole != "" {
		if len(d.command) > 0 || d.url != "" {
			return nil, usageError(errors.New("--entry is the whole entry; leave the command and --url out"))
		}
		return g.readObject("--entry", d.whole)
	}
	env, err := pairs("--env", d.env, "=")
	if err != nil {
		return nil, err
	}
	headers, err := pairs("--header", d.headers, ":")
	if err != nil {
		return nil, err
	}
	if (len(d.command) == 0) == (d.url == "") {
		return nil, usageError(errors.New("say what the server is: a command behind --, or --url"))
	}
	entry := struct {
		Command  string            `json:"command,omitempty"`
		Args     []string          `json:"args,omitempty"`
		URL      string            `json:"url,omitempty"`
		Headers  map[string]string `json:"headers,omitempty"`
		Cwd      string            `json:"cwd,omitempty"`
		EnvFile  string            `json:"envFile,omitempty"`
		Env      map[string]string `json:"env,omitempty"`
		Allowed  []string          `json:"allowedTools,omitempty"`
		Disabled bool              `json:"disabled,omitempty"`
	}{
		URL: d.url, Headers: headers, Cwd: d.cwd, EnvFile: d.envFile, Env: env, Allowed: d.allowed, Disabled: d.off,
	}
	if len(d.command) > 0 {
		entry.Command, entry.Args = d.command[0], d.command[1:]
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(entry)
	return bytes.TrimSpace(text.Bytes()), err
}

// pairs reads names and values of a flag.
func pairs(flag string, given []string, separator string) (map[string]string, error) {
	var all map[string]string
	for _, text := range given {
		name, value, ok := strings.Cut(text, separator)
		if !ok || name == "" {
			return nil, usageError(fmt.Errorf("%s takes NAME%sVALUE", flag, separator))
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[name] = strings.TrimPrefix(value, " ")
	}
	return all, nil
}

func (g *globals) addServer(ctx context.Context, name string, d *entryDraft) error {
	fields, err := d.fields(g)
	if err != nil {
		return err
	}
	client, err := g.running(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		result, err := g.ownEditor(ctx, d.plaintext, func(e *edits.Editor) (*edits.Result, error) {
			return e.Add(name, fields)
		})
		if err != nil {
			return err
		}
		return g.printEdit("added "+name+" to "+mcpconfig.ServersFile, name, result, d.asJSON)
	}
	created, err := client.Create(ctx, name, fields, d.plaintext)
	if err != nil {
		return asLocked(err)
	}
	if d.asJSON {
		return g.writeJSON(created)
	}
	for _, m := range created.Moved {
		fmt.Fprintf(g.err, "%s is in the vault now, as %s\n", m.Field, m.Key)
	}
	for _, w := range created.Warnings {
		fmt.Fprintln(g.err, "warning: "+printable(w))
	}
	_, err = fmt.Fprintf(g.out, "added %s to %s: it is %s\n", name, mcpconfig.ServersFile, created.State)
	return err
}

// printEdit tells of a change that was made without a gateway.
func (g *globals) printEdit(what, name string, result *edits.Result, asJSON bool) error {
	if asJSON {
		moved := []adminapi.MovedSecret{}
		for _, m := range result.Moved {
			moved = append(moved, adminapi.MovedSecret{Field: m.Field, Key: m.Key})
		}
		return g.writeJSON(map[string]any{
			"name": name, "moved": moved, "removed_secrets": append([]string{}, result.Removed...),
		})
	}
	g.printMoves(result)
	_, err := fmt.Fprintln(g.out, what)
	return err
}

// printMoves says where secrets went.
func (g *globals) printMoves(result *edits.Result) {
	for _, m := range result.Moved {
		fmt.Fprintf(g.err, "%s: %s of %s is in the vault now, as %s\n", m.File, printable(m.Field), m.Server, m.Key)
	}
	for _, m := range result.Left {
		fmt.Fprintf(g.err, "%s: %s of %s holds a secret beside references and stays; store it with `garra vault set`, "+
			"and refer to it\n", m.File, printable(m.Field), m.Server)
	}
	for _, f := range result.Findings {
		fmt.Fprintln(g.err, "warning: "+printable(findingText(f)))
	}
	if len(result.Removed) > 0 {
		fmt.Fprintf(g.err, "removed from the vault: %s\n", strings.Join(result.Removed, ", "))
	}
}

// ownEditor makes a change without a gateway.
func (g *globals) ownEditor(
	ctx context.Context, allowPlaintext bool, change func(*edits.Editor) (*edits.Result, error),
) (*edits.Result, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	if err := places.Make(); err != nil {
		return nil, err
	}
	own := &ownVault{g: g, ctx: ctx}
	defer own.close()
	result, err := change(editorIn(places, own, allowPlaintext))
	if err != nil {
		answer := editError("", err)
		if e, ok := errors.AsType[*adminapi.Error](answer); ok && e.Code == adminapi.CodeVaultLocked {
			e.Fix = "" // the message says what this command needs
		}
		return nil, asLocked(answer)
	}
	return result, nil
}

// An ownVault is the vault of a command that makes a change by itself: it is opened
// when it is needed, with what nobody has to be asked for.
type ownVault struct {
	g   *globals
	ctx context.Context // of the command
	v   *opened
	err error // why it is not open
}

// Usable implements edits.Vault.
func (o *ownVault) Usable() error {
	if o.v != nil || o.err != nil {
		return o.err
	}
	places, err := o.g.places()
	if err != nil {
		return err
	}
	if there, err := vault.Exists(places.Vault); err == nil && !there {
		o.err = vault.ErrNoVault
		return o.err
	}
	o.v, o.err = o.g.openVault(o.ctx, false)
	return o.err
}

// Update implements edits.Vault.
func (o *ownVault) Update(change func(*vault.Edit) error) error {
	if err := o.Usable(); err != nil {
		return err
	}
	return o.v.Update(change)
}

func (o *ownVault) close() {
	if o.v != nil {
		o.v.Close()
	}
}

func newMCPRemove(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a server, and its own secrets", Args: exactArgs(1),
		ValidArgsFunction: g.serverNames,
		Long: `Stops a server, takes it out of the configuration, and its own secrets (mcp.NAME.*)
out of the vault. What is shared with it stays.

Exit codes: 1 when there is no such server, 4 when there is a vault and it is locked.`,
		RunE: func(c *cobra.Command, args []string) error { return g.removeServer(c.Context(), args[0], asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"name", "deleted", "removed_secrets"}`)
	return c
}

func (g *globals) removeServer(ctx context.Context, name string, asJSON bool) error {
	client, err := g.running(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		result, err := g.ownEditor(ctx, false, func(e *edits.Editor) (*edits.Result, error) {
			return e.Remove(name, "")
		})
		if err != nil {
			return err
		}
		if asJSON {
			removed := append([]string{}, result.Removed...)
			return g.writeJSON(adminapi.Deleted{Name: name, Deleted: true, Removed: removed})
		}
		return g.printEdit("removed "+name, name, result, false)
	}
	deleted, err := client.Remove(ctx, name)
	if err != nil {
		return asLocked(err)
	}
	if asJSON {
		return g.writeJSON(deleted)
	}
	return g.printEdit("removed "+name, name, &edits.Result{Removed: deleted.Removed}, false)
}

// newMCPSwitch is `mcp enable` or `mcp disable`.
func newMCPSwitch(g *globals, on bool) *cobra.Command {
	action, short := "disable", "Stop a server, and keep it from being started"
	long := `Stops a server and writes to its entry that it is disabled, which the next gateway heeds
too. Without a running gateway it only writes.`
	if on {
		action, short = "enable", "Let a server that is disabled run"
		long = `Writes to the entry of a server that it is not disabled, and starts it, with an isolated
environment. Without a running gateway it only writes.`
	}
	asJSON := false
	c := &cobra.Command{
		Use: action + " NAME", Short: short, Args: exactArgs(1), ValidArgsFunction: g.serverNames,
		Long: long + `

Exit codes: 1 when there is no such server, and when it can't be started.`,
		RunE: func(c *cobra.Command, args []string) error { return g.switchServer(c.Context(), args[0], on, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, `print {"name", "state", "pid", "tools", "env"}`)
	return c
}

func (g *globals) switchServer(ctx context.Context, name string, on, asJSON bool) error {
	action, value := "disable", json.RawMessage("true")
	if on {
		action, value = "enable", json.RawMessage("null")
	}
	client, err := g.running(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		fields := map[string]json.RawMessage{"disabled": value}
		result, err := g.ownEditor(ctx, false, func(e *edits.Editor) (*edits.Result, error) {
			return e.Change(name, "", fields)
		})
		if err != nil {
			return err
		}
		return g.printEdit(name+" is "+action+"d", name, result, asJSON)
	}
	result, err := client.Act(ctx, name, action)
	if err != nil {
		return asLocked(err)
	}
	if asJSON {
		return g.writeJSON(result)
	}
	g.printAct(&result)
	return nil
}
