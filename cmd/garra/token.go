// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/garraia/garra/adminapi"
)

func newToken(g *globals) *cobra.Command {
	return group("token", "Make, list and revoke the tokens of clients and administrators",
		newTokenCreate(g), newTokenList(g), newTokenRevoke(g))
}

// tokens opens the tokens of the configuration.
func (g *globals) tokens() (*adminapi.Tokens, error) {
	places, err := g.places()
	if err != nil {
		return nil, err
	}
	if err := places.Make(); err != nil {
		return nil, err
	}
	return adminapi.OpenTokens(filepath.Join(places.RunDir, "tokens.json")), nil
}

func newTokenCreate(g *globals) *cobra.Command {
	role, client, asJSON := "", "", false
	c := &cobra.Command{
		Use: "create", Short: "Make a token and show it, this one time", Args: exactArgs(0),
		Long: `Makes a token: with --client NAME one for the MCP endpoints, with --role one for
the admin routes. Only a digest is stored, so the token is shown this one time.`,
		RunE: func(*cobra.Command, []string) error {
			if (role == "") == (client == "") {
				return usageError(errors.New("give either --client NAME or --role viewer|operator|admin"))
			}
			r := adminapi.Role(role)
			if client != "" {
				r = adminapi.RoleClient
			} else if !r.Valid() || r == adminapi.RoleClient {
				return usageError(fmt.Errorf("--role %q is none of viewer, operator, admin", role))
			}
			tokens, err := g.tokens()
			if err != nil {
				return err
			}
			token, secret, err := tokens.Create(r, client, time.Now())
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(struct {
					adminapi.Token
					Secret string `json:"token"`
				}{token, secret})
			}
			fmt.Fprintln(g.out, secret)
			fmt.Fprintf(g.err, "token %s of role %s; it is not shown again\n", token.ID, token.Role)
			return nil
		},
	}
	c.Flags().StringVar(&role, "role", "", "viewer, operator or admin")
	c.Flags().StringVar(&client, "client", "", "the name of the MCP client that the token is for")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func newTokenList(g *globals) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "list", Short: "List tokens, without themselves", Args: exactArgs(0),
		RunE: func(*cobra.Command, []string) error {
			tokens, err := g.tokens()
			if err != nil {
				return err
			}
			list, err := tokens.List()
			if err != nil {
				return err
			}
			if asJSON {
				return g.writeJSON(map[string]any{"tokens": listed(list)})
			}
			w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tROLE\tCLIENT\tCREATED")
			for _, t := range list {
				created := t.CreatedAt.Local().Format(time.DateTime)
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.ID, t.Role, printable(t.Client), created)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// A tokenLine is one token of `token list`.
type tokenLine struct {
	ID        string        `json:"id"`
	Role      adminapi.Role `json:"role"`
	Client    *string       `json:"client"`
	CreatedAt time.Time     `json:"created_at"`
}

func listed(list []adminapi.Token) []tokenLine {
	lines := make([]tokenLine, len(list))
	for i, t := range list {
		lines[i] = tokenLine{ID: t.ID, Role: t.Role, CreatedAt: t.CreatedAt}
		if t.Client != "" {
			lines[i].Client = &list[i].Client
		}
	}
	return lines
}

func newTokenRevoke(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token; sessions that use it end", Args: exactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := g.tokens()
			if err != nil {
				return err
			}
			return tokens.Revoke(args[0])
		},
	}
}
