// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

// TestDocumentation compares docs/cli.md with the commands that there are.
func TestDocumentation(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "cli.md")
	want := documentation(newRoot(&globals{}))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/cli.md is not what the commands say; go test -run %s ./cmd/garra -update writes it:\n%s",
			t.Name(), diff)
	}
}

const preface = `<!-- Written by: go test -run TestDocumentation ./cmd/garra -update -->

# Commands

Data goes to standard output, everything else to standard error. Every list and check takes ` + "`--json`" + `.
On a terminal lists are aligned, have a header, and may be cut to the line; elsewhere they are lines of tab-separated
values without a header, and whole. Colour is used on a terminal only, and not when ` + "`NO_COLOR`" + ` is set.
Control characters that a server says are never passed to a terminal.

When a gateway runs for the configuration folder, commands ask it. When none does, they do the work themselves and leave
nothing running.

[errors.md](errors.md) lists exit codes. An error is a line on standard error that begins with ` + "`garra: `" + `;
when the command line is wrong, a second line says where help is, and the exit code is 2.

Flags of every command:

`

// documentation is docs/cli.md.
func documentation(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(preface)
	writeFlags(&b, root.PersistentFlags())
	each(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n", c.CommandPath())
		fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimSuffix(c.UseLine(), " [flags]"))
		fmt.Fprintf(&b, "%s\n", strings.TrimSpace(c.Long))
		if c.LocalNonPersistentFlags().HasFlags() {
			b.WriteString("\n")
			writeFlags(&b, c.LocalNonPersistentFlags())
		}
		if c.HasExample() {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
		}
	})
	return b.String()
}

// each visits the commands that do something, in the order of help.
func each(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		switch {
		case sub.Hidden, sub.Name() == "help":
		case sub.HasSubCommands():
			each(sub, visit)
		default:
			visit(sub)
		}
	}
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | meaning |\n| --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		text := "--" + f.Name
		if f.Shorthand != "" {
			text = "-" + f.Shorthand + ", " + text
		}
		if name != "" {
			text += " " + name
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			usage += fmt.Sprintf("; default `%s`", f.DefValue)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", text, strings.ReplaceAll(usage, "|", `\|`))
	})
}

// TestHelp holds every command to what its help must have.
func TestHelp(t *testing.T) {
	each(newRoot(&globals{}), func(c *cobra.Command) {
		name := c.CommandPath()
		switch {
		case c.Long == "":
			t.Errorf("%s: no long text", name)
		case strings.HasSuffix(c.Short, ".") || c.Short == "" || !strings.HasSuffix(strings.TrimSpace(c.Long), "."):
			t.Errorf("%s: %q is no heading, or %q no sentence", name, c.Short, c.Long)
		case c.Args == nil:
			t.Errorf("%s: takes any arguments", name)
		}
		for line := range strings.Lines(c.Long) {
			if len(line) > 90 {
				t.Errorf("%s: a line of %d columns: %s", name, len(line), line)
			}
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); name == "string" || name == "strings" {
				t.Errorf("%s --%s: the value has no name", c.CommandPath(), f.Name)
			}
		})
	})
}

// TestListsTakeJSON: every listing and check can be read by a program.
func TestListsTakeJSON(t *testing.T) {
	each(newRoot(&globals{}), func(c *cobra.Command) {
		if strings.Contains(" list check inspect tools path show logs version ", " "+c.Name()+" ") &&
			c.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", c.CommandPath())
		}
	})
}
