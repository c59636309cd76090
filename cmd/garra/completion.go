// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newCompletion(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a script that completes garra's command lines",
		Args: exactArgs(1), ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Long: `Prints a script with which a shell completes garra's commands, flags and server
names. SHELL is bash, zsh, fish or powershell.`,
		Example: `  source <(garra completion bash)
  garra completion zsh > "${fpath[1]}/_garra"
  garra completion fish > ~/.config/fish/completions/garra.fish`,
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(g.out, true)
			case "zsh":
				return root.GenZshCompletion(g.out)
			case "fish":
				return root.GenFishCompletion(g.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(g.out)
			}
			return usageError(fmt.Errorf("%q is none of bash, zsh, fish, powershell", args[0]))
		},
	}
}

// serverNames completes the argument that names a server.
func (g *globals) serverNames(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := g.list(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, s := range list.Servers {
		names = append(names, s.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
